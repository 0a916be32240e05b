"""`make bench-sink` in small: every contender really writes its rows, and every figure is there. Nothing is timed."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from eos.local import LocalPulsar
from tests.benchmarks import results
from tests.benchmarks.plan import Plan
from tests.benchmarks.rows import FIXED, RANDOM, Case
from tests.benchmarks.sink import measure
from tests.benchmarks.table import LABELS, show
from tests.benchmarks.throughput import METRICS, TLS, WRITERS, topic_of
from tests.benchmarks.worker_memory import peak_in_fresh_process
from tests.certificates import BrokerTls, make_tls
from tests.conftest import START_S
from tests.reading import messages_of

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    tls = make_tls(tmp_path_factory.mktemp("tls"))
    with LocalPulsar(settings=tls.settings, start_timeout_s=START_S) as broker:
        yield plan_on(broker, tls)


def plan_on(broker: LocalPulsar, tls: BrokerTls) -> Plan:
    return Plan(
        broker=broker,
        tls=tls,
        broker_pid=broker.pid,
        tell=lambda _: None,
        stem=f"smoke-{uuid.uuid4().hex[:8]}",
        rows=2_000,
        rounds=1,
        warm_ups=1,
        batches=2,
        batch_warm_ups=1,
    )


@pytest.fixture(scope="module")
def found(spark: SparkSession, plan: Plan) -> Any:
    memory = results.worker_memory({plan.rows: [100 << 20], 10 * plan.rows: [110 << 20]})
    return json.loads(json.dumps({**measure(spark, plan), **memory}))


@pytest.mark.parametrize("case", [FIXED, RANDOM], ids=lambda case: case.name)
@pytest.mark.parametrize("contender", [TLS, METRICS, *(writer.name for writer in WRITERS)])
def test_every_contender_writes_every_row_in_every_round(plan: Plan, found: Any, contender: str, case: Case) -> None:
    topic = f"persistent://public/default/{topic_of(plan.stem, case, contender)}"
    messages = [(one.partition_key(), one.data()) for one in messages_of(plan.broker.service_url, topic)]
    assert set(Counter(messages).values()) == {plan.warm_ups + plan.rounds}
    assert len(set(messages)) == plan.rows
    sizes = {len(value) for _, value in messages}
    assert min(sizes) == case.shortest
    assert max(sizes) == case.longest


def test_all_figures_are_there(plan: Plan, found: Any) -> None:
    for part in (found, found[RANDOM.name]):
        assert set(part["rounds"]) == set(part["rows_per_s"]) == set(LABELS)
        assert all(len(one["seconds"]) == plan.rounds for one in part["rounds"].values())
        assert set(part["ratios"]) == {"pulsar_client", "java_txn", "ceiling", "tls", "metrics"}
        assert set(part["cpu"]["of_each"]) == set(part["cpu"]["broker_of_each"]) == set(LABELS)
        assert {"sink_over_counting", "java", "pulsar_client", "broker"} <= set(part["cpu"])
    batch = found["batch_ms"]
    assert {"p50", "p99", "task_p50_over_count", "partitions_64_over_1"} <= set(batch)
    assert len(batch["batches"]["driver"]) == plan.batches
    assert [len(pairs) for pairs in batch["batches"]["one_row"]] == [plan.batches, plan.batches]
    assert found["worker_rss_10m_over_1m"] == 1.1
    console = Console(record=True, width=160)
    show(console, found)
    shown = console.export_text()
    assert all(label in shown for label in LABELS.values())


def test_the_memory_of_a_worker_is_that_of_the_process_that_wrote(pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("smoke-memory", partitions=2)
    assert peak_in_fresh_process(pulsar.service_url, topic, 500) > 50 << 20
    assert len(messages_of(pulsar.service_url, topic)) == 500
