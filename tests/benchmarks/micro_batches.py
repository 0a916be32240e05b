"""The time that the sink adds to a small micro-batch of a real streaming query.

In each batch the sink and a baseline take turns at being first, on the same rows; the figure
is the difference within the batch. Batches may alternate between topics, so that these too
are compared under the same weather.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos
from tests.benchmarks.counting import count_in_workers
from tests.benchmarks.plan import Plan, create_topic

SPARK_PARTITIONS = 4
TELL_EVERY = 100
Baseline = Callable[[DataFrame], object]


@dataclass(frozen=True)
class Pair:
    """Milliseconds that one batch spent in the baseline and in the sink."""

    baseline: float
    sink: float

    @property
    def added(self) -> float:
        """Milliseconds that the sink took longer."""
        return self.sink - self.baseline


@dataclass(frozen=True)
class Setup:
    """One streaming query.

    Attributes:
        what: what it is about, for the topics' names.
        baseline: what the sink is compared with.
        small_batch_rows: the sink's option; 0 for the task path.
        rows: of each micro-batch.
        partitions: of each topic; batches go to one topic after the other.
    """

    what: str
    baseline: Baseline
    small_batch_rows: int = 1_000
    rows: int = 1
    partitions: tuple[int, ...] = (4,)


def measure(session: SparkSession, plan: Plan, setup: Setup) -> list[list[Pair]]:
    """Run one query until each of its topics has had `plan.batches` batches after the warm-up; return their pairs."""
    stem = f"{plan.stem}-{setup.what}"
    topics = [create_topic(plan.broker, f"{stem}-{count}", count) for count in setup.partitions]
    sink = eos.sink(plan.broker.service_url, name=stem, small_batch_rows=setup.small_batch_rows)
    pairs: list[list[Pair]] = [[] for _ in topics]
    each = plan.batch_warm_ups + plan.batches

    def write(df: DataFrame, batch_id: int) -> None:
        number, turn = divmod(batch_id, len(topics))
        if number >= each:
            return

        def by_sink() -> None:
            with sink.batch(batch_id) as txn:
                txn.write(df, topics[turn])

        took: dict[bool, float] = {}
        for of_sink in (True, False) if number % 2 else (False, True):
            took[of_sink] = _milliseconds(by_sink if of_sink else lambda: setup.baseline(df))
        pairs[turn].append(Pair(took[False], took[True]))
        if (batch_id + 1) % TELL_EVERY == 0:
            plan.tell(f"{setup.what}: micro-batch {batch_id + 1}/{each * len(topics)}")

    stream = session.readStream.format("rate-micro-batch")
    stream = stream.option("rowsPerBatch", setup.rows).option("numPartitions", SPARK_PARTITIONS)
    number = F.col("value").cast("string").cast("binary")
    with tempfile.TemporaryDirectory(prefix="benchmark-", ignore_cleanup_errors=True) as checkpoint:
        messages = stream.load().select(number.alias("key"), number.alias("value"))
        query = messages.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()
        try:
            while len(pairs[-1]) < each and query.isActive:
                query.awaitTermination(1)
        finally:
            query.stop()
            sink.close()
    return [taken[plan.batch_warm_ups :] for taken in pairs]


def noop(df: DataFrame) -> None:
    """Run the batch and throw it away."""
    df.write.format("noop").mode("overwrite").save()


@dataclass(frozen=True)
class Latency:
    """Every micro-batch that was measured, by what it was about.

    Attributes:
        driver: one row by the driver over a noop write.
        tasks: one row by the tasks over counting in the Python workers.
        one_row: one row by the driver, to a topic of 1 partition and to one of 64.
        all_partitions: as many rows as reach all partitions, to the same two.
    """

    driver: list[Pair]
    tasks: list[Pair]
    one_row: list[list[Pair]]
    all_partitions: list[list[Pair]]


MANY = 64
ROWS_FOR_ALL = 512
"""Keyed rows that leave none of 64 partitions out, but for one batch in fifty."""


def latency(session: SparkSession, plan: Plan) -> Latency:
    """Measure all four, one query after the other."""
    return Latency(
        driver=measure(session, plan, Setup("driver", noop))[0],
        tasks=measure(session, plan, Setup("tasks", count_in_workers, small_batch_rows=0))[0],
        one_row=measure(session, plan, Setup("one-row", noop, partitions=(1, MANY))),
        all_partitions=measure(session, plan, Setup("all-written", noop, rows=ROWS_FOR_ALL, partitions=(1, MANY))),
    )


def added_p50(pairs: list[Pair]) -> float:
    """Milliseconds that the sink adds to a batch at the median."""
    return median(pair.added for pair in pairs)


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3
