"""The history of a topic read through the brokers and past them, on a cluster; the CPU of each kind of process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
from pyspark.sql import SparkSession

from eos.local import LocalCluster
from tests.benchmarks import client_cpu
from tests.benchmarks.python_sources import COLUMNS
from tests.benchmarks.readers import Reading, fill
from tests.benchmarks.rounds import Timed, take_turns
from tests.benchmarks.source_plan import PARTITIONS, Case, SourcePlan

BROKERS, BOOKIES, IDLE = "through_brokers", "from_bookies", "idle"
_IDLE_S = 5.0


@dataclass
class _Idle:
    """Nobody reads: what the processes use by themselves. Attributes: its name; the rows of a read."""

    name: str
    rows: int

    def run(self) -> int:
        time.sleep(_IDLE_S)
        return self.rows


def compare(session: SparkSession, plan: SourcePlan) -> dict[str, dict[str, Timed]]:
    """Read closed ledgers of both kinds in turn; return what each way took of all processes, by the case's name."""
    with LocalCluster(memory="1g", tell=plan.tell) as cluster, tempfile.TemporaryDirectory() as folder:
        there = replace(plan, broker=cluster)
        cases = (plan.large, plan.small)
        topics = fill(there, Path(folder), *cases)
        for topic in topics.values():
            _close_ledgers(cluster, topic)
        return {case.name: _turns(session, there, case, cluster, topics[case.name]) for case in cases}


def _turns(session: SparkSession, plan: SourcePlan, case: Case, cluster: LocalCluster, topic: str) -> dict[str, Timed]:
    given = {"service.url": cluster.service_url, "admin.url": cluster.admin_url, "topic": topic}
    ways: Mapping[str, str] = {BROKERS: "brokers", BOOKIES: "bookies"}
    contenders = [
        Reading(name, session.read.format("pulsar").options(**given, **{"read.from": way}).schema(COLUMNS).load())
        for name, way in ways.items()
    ]
    return take_turns(
        [*contenders, _Idle(IDLE, case.rows)],
        plan,
        f"segments, {case.name}",
        case.rows,
        cpu=client_cpu.of_session(session),
        broker_cpu=client_cpu.of_processes(_pids(cluster, "broker-")),
        bookie_cpu=client_cpu.of_processes(_pids(cluster, "bookie-")),
    )


def _pids(cluster: LocalCluster, stem: str) -> list[int]:
    pids = [one.pid for name, one in cluster.members.items() if name.startswith(stem)]
    return [pid for pid in pids if pid is not None]


def _close_ledgers(cluster: LocalCluster, topic: str) -> None:
    """Have the brokers let go of a topic: its ledgers are closed, and no broker has their entries in memory."""
    for number in range(PARTITIONS):
        where = f"{cluster.admin_url}/admin/v2/{topic.replace('://', '/')}-partition-{number}/unload"
        httpx.put(where, timeout=60, follow_redirects=True).raise_for_status()
