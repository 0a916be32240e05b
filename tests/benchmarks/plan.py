"""How much is measured, and where: a broker and topics of the benchmark's own, and what has been published there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import httpx

from tests.certificates import BrokerTls

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The plan of one run of the benchmark.

    Attributes:
        broker: where to write.
        tls: how that broker speaks TLS; None: it doesn't, and is not measured with it.
        broker_pid: the process whose CPU is the broker's; None: it is not measured.
        tell: takes a line about what has been done.
        stem: the names of all topics begin with it.
        rows: of each run of a contender.
        rounds, warm_ups: runs of each contender that count, and those before that don't.
        batches, batch_warm_ups: the same for micro-batches.
        memory_runs: processes whose memory is measured, for each number of rows.
    """

    broker: Broker
    tell: Tell
    stem: str = "bench"
    rows: int = 1_000_000
    rounds: int = 5
    warm_ups: int = 2
    batches: int = 300
    batch_warm_ups: int = 40
    memory_runs: int = 3
    tls: BrokerTls | None = None
    broker_pid: int | None = None


PARTITIONS = 4


class Broker(Protocol):
    """Where to write: `eos.local.LocalPulsar`, or one that runs already."""

    @property
    def service_url(self) -> str:
        """pulsar://host:port."""

    @property
    def admin_url(self) -> str:
        """http://host:port."""


def create_topic(broker: Broker, name: str, partitions: int = PARTITIONS) -> str:
    """Create a partitioned topic in public/default and return its full name."""
    path = f"{broker.admin_url}/admin/v2/persistent/public/default/{name}/partitions"
    httpx.put(path, json=partitions, timeout=60).raise_for_status()
    return f"persistent://public/default/{name}"


def published(broker: Broker, topic: str) -> int:
    """How many messages the broker has taken in on all partitions, those of aborted transactions among them."""
    path = f"{broker.admin_url}/admin/v2/{topic.replace('://', '/')}/partitioned-stats"
    answer = httpx.get(path, timeout=60)
    answer.raise_for_status()
    return int(answer.json()["msgInCounter"])
