"""Rows a second of the sink and of the others, for one kind of rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial

from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from eos.metrics.prometheus import PrometheusMetrics
from tests.benchmarks import client_cpu
from tests.benchmarks.counting import CountOnly, count_in_workers
from tests.benchmarks.java_client import JavaClient, JavaTransaction
from tests.benchmarks.official_client import OfficialClient
from tests.benchmarks.plan import Plan, create_topic, published
from tests.benchmarks.rounds import Contender, Timed, take_turns
from tests.benchmarks.rows import Case, cached, make_rows
from tests.benchmarks.this_sink import ThisSink

WRITERS = (ThisSink, OfficialClient, JavaTransaction)
"""The contenders that write; each has a topic of its own."""

TLS = "tls"
"""The sink again, on a broker's port with TLS."""

METRICS = "metrics"
"""The sink again, with Prometheus told of each batch."""


def topic_of(stem: str, case: Case, contender: str) -> str:
    """Return the last part of the name of a contender's topic."""
    return f"{stem}-{case.name}-{contender}"


def compare(session: SparkSession, java: JavaClient, plan: Plan, case: Case) -> dict[str, Timed]:
    """Let all contenders deal with the same rows in turn; return what each took.

    Raises RuntimeError when the broker has not got every row of every run.
    """
    broker = plan.broker
    names = [one.name for one in WRITERS] + [METRICS] + ([TLS] if plan.tls else [])
    topics = {name: create_topic(broker, topic_of(plan.stem, case, name)) for name in names}
    with cached(make_rows(session, case, plan.rows)) as df, ExitStack() as opened:
        java.load(df.toArrow())
        prometheus = PrometheusMetrics(CollectorRegistry())
        observed = ThisSink(df, broker.service_url, topics[METRICS], name=METRICS, metrics=prometheus)
        contenders: list[Contender] = [
            opened.enter_context(closing(ThisSink(df, broker.service_url, topics[ThisSink.name]))),
            opened.enter_context(closing(observed)),
            OfficialClient(df, broker.service_url, topics[OfficialClient.name]),
            JavaTransaction(java, topics[JavaTransaction.name]),
            CountOnly(df),
        ]
        if plan.tls:
            over_tls = ThisSink(df, plan.tls.service_url, topics[TLS], name=TLS, tls_trust_certs=plan.tls.trust_certs)
            contenders.insert(2, opened.enter_context(closing(over_tls)))
        timed = take_turns(
            contenders,
            plan,
            case.name,
            plan.rows,
            before=partial(wake_workers, session),
            cpu=client_cpu.of_session(session, java.pid),
            broker_cpu=client_cpu.of_process(plan.broker_pid) if plan.broker_pid else None,
        )
    look_for_all(plan, case.name, topics)
    return timed


def look_for_all(plan: Plan, title: str, topics: Mapping[str, str]) -> None:
    """Raise RuntimeError when the broker has not got every row of every run. Args: {contender: its topic}."""
    expected = plan.rows * (plan.warm_ups + plan.rounds)
    for name, topic in topics.items():
        if (stored := published(plan.broker, topic)) < expected:
            raise RuntimeError(f"the broker has {stored} messages of {name}; it should have {expected}")
        if stored > expected:
            plan.tell(f"{title}: {name}: {stored - expected} messages of tries that were aborted are in its times")


def wake_workers(session: SparkSession) -> None:
    """Have Spark's Python workers up: it ends those that were idle for a minute, as while another has a long turn."""
    count_in_workers(session.range(2, numPartitions=2))
