"""Stateful queries on a source that repeats itself: batch N always has the same rows, so results can be recomputed.

Each row has a `value`, 0, 1, 2, … over all batches, and a `timestamp`: batch N's is N seconds after START.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.waiting import until_tasks_end

ROWS = 20  # of a batch
START = 1_000  # seconds; a row of second 0 would be late from the beginning
_STORE = "spark.sql.streaming.stateStore."
_PACKAGE = "org.apache.spark.sql.execution.streaming.state."
_ROCKSDB = {
    f"{_STORE}providerClass": f"{_PACKAGE}RocksDBStateStoreProvider",
    f"{_STORE}rocksdb.changelogCheckpointing.enabled": "false",
    f"{_STORE}checkpointFormatVersion": "1",
}
_CHANGELOG = _ROCKSDB | {f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true"}
PROVIDERS: dict[str, dict[str, str]] = {
    "hdfs": {
        f"{_STORE}providerClass": f"{_PACKAGE}HDFSBackedStateStoreProvider",
        f"{_STORE}checkpointFormatVersion": "1",
    },
    "rocksdb": _ROCKSDB,
    "changelog1": _CHANGELOG,
    "changelog2": _CHANGELOG | {f"{_STORE}checkpointFormatVersion": "2"},
}
# Small, fast and eventful: snapshots every few batches.
SESSION = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "localhost",
    f"{_STORE}minDeltasForSnapshot": "3",
    f"{_STORE}maintenanceInterval": "1s",
}


def _is_on(spark: SparkSession, name: str) -> bool:
    """Whether a kind of evolution is on: then Spark wants a name for each source, or for the sink."""
    return spark.conf.get(f"spark.sql.streaming.queryEvolution.{name}", "false") == "true"


def rows(spark: SparkSession) -> DataFrame:
    """The source, with a watermark of ten seconds: ten batches."""
    reader = spark.readStream
    if _is_on(spark, "enableSourceEvolution"):
        reader = reader.name("rows")
    source = reader.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 1)
    source = source.option("startTimestamp", START * 1000).option("advanceMillisPerBatch", 1000)
    return source.load().withWatermark("timestamp", "10 seconds")


def aggregation(spark: SparkSession) -> tuple[DataFrame, str]:
    """Count and add up the rows of each key in windows of five batches."""
    groups = rows(spark).groupBy(F.window("timestamp", "5 seconds"), (F.col("value") % 7).alias("k"))
    counts = groups.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    return counts.select(F.col("window.start").cast("long").alias("start"), "k", "n", "total"), "update"


def deduplication(spark: SparkSession) -> tuple[DataFrame, str]:
    """Each key comes three times, often in two batches; the first is let through."""
    keys = rows(spark).select("timestamp", F.floor(F.col("value") / 3).alias("k"))
    return keys.dropDuplicatesWithinWatermark(["k"]).select("k"), "append"


def join(spark: SparkSession) -> tuple[DataFrame, str]:
    """Pair each row with the one thirty before it, from an earlier batch."""
    left = rows(spark).select(F.col("timestamp").alias("t"), F.col("value").alias("k"))
    right = rows(spark).select(F.col("timestamp").alias("u"), (F.col("value") + 30).alias("j"))
    pairs = left.join(right, F.expr("k = j AND u >= t - INTERVAL 5 SECONDS AND u <= t"))
    return pairs.select("k"), "append"


def transform(spark: SparkSession) -> tuple[DataFrame, str]:
    """Add up the values of each key in Python, with a value, a list and a map as state."""
    from tests.soak.totals import Totals

    keyed = rows(spark).select((F.col("value") % 5).alias("k"), "value").groupBy("k")
    return keyed.transformWithStateInPandas(Totals(), "k long, total long", "Update", "None"), "update"


QUERIES: dict[str, Callable[[SparkSession], tuple[DataFrame, str]]] = {
    "aggregation": aggregation,
    "deduplication": deduplication,
    "join": join,
    "transform": transform,
}


def chained(spark: SparkSession) -> tuple[DataFrame, str]:
    """Count the keys that are let through: two stateful operators."""
    keys = rows(spark).select("timestamp", F.floor(F.col("value") / 3).alias("k")).dropDuplicatesWithinWatermark(["k"])
    return keys.groupBy(F.window("timestamp", "5 seconds")).agg(F.count("*").alias("n")).select("n"), "append"


CHAINED = {"chained": chained}
"""Not among those of the soak test."""
# transformWithState needs RocksDB.
PAIRS = [(provider, query) for provider in PROVIDERS for query in QUERIES if (provider, query) != ("hdfs", "transform")]


def start(
    spark: SparkSession,
    provider: str,
    query: str,
    checkpoint: str,
    each: Any = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Start a query in a session of its own, with the provider's settings; `each(rows, batch)` gets its results."""
    session = spark.newSession()
    for name, value in {**SESSION, **PROVIDERS[provider], **settings}.items():
        if name.startswith("spark.sql."):
            session.conf.set(name, value)
    frame, mode = (QUERIES | CHAINED)[query](session)
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
    writer = writer.format("noop") if each is None else writer.foreachBatch(each)
    if _is_on(session, "enableSinkEvolution"):
        writer._jwrite.name("out")
    return writer.trigger(processingTime="100 milliseconds").start()


def run(
    spark: SparkSession,
    provider: str,
    query: str,
    checkpoint: str,
    batches: int,
    each: Any = None,
    enough: Callable[[], bool] = lambda: True,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run a query until so many batches are committed and it is enough; its files stay as they are then."""
    running = start(spark, provider, query, checkpoint, each, settings)
    deadline = time.monotonic() + 300
    try:
        while (progress := running.lastProgress) is None or progress["batchId"] < batches - 1 or not enough():
            if running.exception() is not None:
                raise running.exception()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{provider} {query}: batch {progress and progress['batchId']} after five minutes")
            time.sleep(0.05)
    finally:
        running.stop()
        until_tasks_end(spark)
        # Else maintenance, which may be at work on a snapshot, ends it under the test. The next query starts it again.
        spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()  # type: ignore[union-attr]
