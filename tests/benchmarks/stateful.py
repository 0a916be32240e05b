"""One stateful query on each file system in turn: the cost of its commits, the files that they leave, and its restart.

A turn starts the query on the checkpoint of the turn before, lets it run for some batches and stops it. To Spark that
is a restart: the state stores are new ones, and load what they need from the checkpoint.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from statestore.bk import tree
from statestore.bk.address import BkAddress
from statestore.hadoop.file_systems import Hadoop
from tests.benchmarks.state_plan import StatePlan

STORE = "spark.sql.streaming.stateStore."
# Spark's defaults, but for: the provider; cleaning and maintenance so often that short turns have their share of them.
SETTINGS = {
    f"{STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STORE}rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
MAINTENANCE = {f"{STORE}maintenanceInterval": "10s"}
"""For the whole Spark application: it has one maintenance thread."""

_POLL_S = 0.05
_PATIENCE_S = 300.0


@dataclass(frozen=True)
class Batch:
    """A micro-batch as Spark's progress tells of it, in milliseconds.

    Attributes:
        wal, state, log: `walCommit`, the largest `commitTimeMs` of a stateful operator, which is the sum over its
            partitions, and `commitOffsets`.
        whole: from the trigger to the end.
    """

    wal: float
    state: float
    log: float
    whole: float

    @property
    def commit(self) -> float:
        """The times of committing."""
        return self.wal + self.state + self.log

    @classmethod
    def of(cls, progress: dict[str, Any]) -> Batch:
        took = progress["durationMs"]
        state = max(operator["commitTimeMs"] for operator in progress["stateOperators"])
        return cls(took["walCommit"], state, took["commitOffsets"], took["triggerExecution"])


@dataclass(frozen=True)
class Reading:
    """The counters of ZooKeeper, read at one moment.

    Attributes:
        moment: of a clock, in seconds.
        batch: the last one that was committed.
        writes: ZooKeeper's number of its last write; a multi is one.
        ledgers: those that bk:// has registered.
    """

    moment: float
    batch: int
    writes: int
    ledgers: int


@dataclass(frozen=True)
class Turn:
    """One turn of one file system.

    Attributes:
        batches: those that count.
        restart_s: from the call that starts the query until its first batch is committed.
        rows: in the state at the end.
        seconds, written, zookeeper_writes, ledgers: a stretch of its batches, how many there were in it, and how many
            writes of ZooKeeper and new ledgers of bk://, whoever made them.
    """

    batches: Sequence[Batch]
    restart_s: float
    rows: int
    seconds: float
    written: int
    zookeeper_writes: int
    ledgers: int


class Counters:
    """Reads the number of ZooKeeper's last write, and how many ledgers bk:// has."""

    def __init__(self, zookeeper: str) -> None:
        self._zookeeper = zookeeper

    def read(self, query: StreamingQuery) -> Reading:
        """Both counters, and the query's batch: ledgers first, since the query goes on while they are listed."""
        ledgers = tree.ledgers(Hadoop.of(), BkAddress.parse(f"bk://{self._zookeeper}/"))
        return Reading(time.perf_counter(), _batch(query), self._last_write(), len(ledgers))

    def _last_write(self) -> int:
        host, _, port = self._zookeeper.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"srvr")
            said = b"".join(iter(lambda: connection.recv(4096), b""))
        found = re.search(rb"^Zxid: 0x([0-9a-f]+)$", said, re.MULTILINE)
        assert found is not None, said
        return int(found[1], 16)


def take_turn(session: SparkSession, plan: StatePlan, counters: Counters, name: str, partitions: int) -> Turn:
    """Run the query on this file system until its batches that count are committed.

    Raises whatever ends the query, and TimeoutError when it gets nowhere.
    """
    query, asked = _start(session, plan, f"{plan.roots[name]}/state-{partitions}", partitions)
    try:
        first = _reached(query, lambda progress: True)
        before = first["batchId"] + plan.batch_warm_ups
        _reached(query, lambda progress: progress["batchId"] >= before)
        since = counters.read(query)
        count = plan.batches[partitions]
        newest = _reached(query, lambda progress: progress["batchId"] >= before + count)
        _reached(query, lambda progress: progress["batchId"] >= since.batch + count)
        until = counters.read(query)
        counted = [one for one in query.recentProgress if before < one["batchId"] <= before + count]
    finally:
        query.stop()
    return Turn(
        batches=[Batch.of(one) for one in counted],
        restart_s=_end(first) - asked,
        rows=sum(operator["numRowsTotal"] for operator in newest["stateOperators"]),
        seconds=until.moment - since.moment,
        written=until.batch - since.batch,
        zookeeper_writes=until.writes - since.writes,
        ledgers=until.ledgers - since.ledgers,
    )


def _start(session: SparkSession, plan: StatePlan, checkpoint: str, partitions: int) -> tuple[StreamingQuery, float]:
    own = session.newSession()
    for setting, value in (SETTINGS | {"spark.sql.shuffle.partitions": str(partitions)}).items():
        own.conf.set(setting, value)
    stream = own.readStream.format("rate-micro-batch").option("rowsPerBatch", plan.rows).option("numPartitions", 2)
    groups = stream.load().groupBy((F.col("value") % plan.keys).alias("key"))
    totals = groups.agg(F.count("*").alias("rows"), F.sum("value").alias("total"))
    writer = totals.writeStream.outputMode("update").format("noop").option("checkpointLocation", checkpoint)
    asked = time.time()
    return writer.start(), asked


def _reached(query: StreamingQuery, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait for a batch; return the oldest one that is enough."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        progress = query.lastProgress
        if progress is not None and enough(progress):
            return next(one for one in query.recentProgress if enough(one))
        if (failure := query.exception()) is not None:
            raise failure
        if time.monotonic() > deadline:
            raise TimeoutError(f"the query is at batch {progress and progress['batchId']} after {_PATIENCE_S:g} s")
        time.sleep(_POLL_S)


def _batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    assert progress is not None
    return int(progress["batchId"])


def _end(progress: dict[str, Any]) -> float:
    """The time of day when a batch was committed."""
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
    took_ms: float = progress["durationMs"]["triggerExecution"]
    return began.timestamp() + took_ms / 1e3
