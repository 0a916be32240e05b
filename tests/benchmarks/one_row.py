"""The time of a micro-batch of one row: by this source, by an empty source in Python, and by Spark's rate source."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import pulsar
from pyspark.sql import DataFrame, SparkSession

from tests.benchmarks.plan import create_topic
from tests.benchmarks.python_sources import COLUMNS, EmptyStream
from tests.benchmarks.source_plan import SourcePlan

OURS, EMPTY, RATE = "this_source", "empty_python_source", "rate"
_LOOK_S = 0.02
_PATIENCE_S = 120


def measure(session: SparkSession, plan: SourcePlan) -> dict[str, list[list[float]]]:
    """Return {source: milliseconds of each micro-batch of each turn}; the sources take turns."""
    session.dataSource.register(EmptyStream)
    topic = create_topic(plan.broker, f"{plan.stem}-one-row", 1)
    taken: dict[str, list[list[float]]] = {OURS: [], EMPTY: [], RATE: []}
    client = pulsar.Client(plan.broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        producer = client.create_producer(topic, batching_enabled=False)

        def send() -> None:
            producer.send(b"1", partition_key="1")

        for number in range(plan.rounds):
            pulsar_stream = session.readStream.format("pulsar").schema(COLUMNS)
            pulsar_stream = pulsar_stream.option("service.url", plan.broker.service_url).option("topic", topic)
            ours = pulsar_stream.options(subscription=f"{plan.stem}-{number}", startingOffsets="earliest").load()
            empty = session.readStream.format(EmptyStream.name()).load()
            rate = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
            for name, stream, feed in ((OURS, ours, send), (EMPTY, empty, _nothing), (RATE, rate.load(), _nothing)):
                turn = _turn(stream, feed, plan)
                taken[name].append(turn)
                plan.tell(f"one row: round {number + 1}/{plan.rounds}: {name}: {sorted(turn)[len(turn) // 2]:.0f} ms")
    finally:
        client.close()
    return taken


def _turn(stream: DataFrame, feed: Callable[[], object], plan: SourcePlan) -> list[float]:
    """Run a query until enough batches of one row have ended; `feed` brings the next row, once the one before is in."""
    wanted = plan.batch_warm_ups + plan.batches
    found: list[float] = []
    give_up = time.monotonic() + _PATIENCE_S
    with tempfile.TemporaryDirectory(prefix="benchmark-", ignore_cleanup_errors=True) as checkpoint:
        query = stream.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            feed()
            seen = -1
            while len(found) < wanted:
                progress = query.lastProgress
                if progress is not None and progress.batchId > seen and progress.numInputRows:
                    seen = progress.batchId
                    if progress.numInputRows == 1:
                        found.append(progress.durationMs["triggerExecution"])
                    feed()
                if time.monotonic() > give_up or not query.isActive:
                    raise RuntimeError(f"{len(found)} of {wanted} batches came: {query.exception()}")
                time.sleep(_LOOK_S)
        finally:
            query.stop()
    return found[plan.batch_warm_ups :]


def _nothing() -> None:
    """Bring nothing: the source makes its rows by itself."""
