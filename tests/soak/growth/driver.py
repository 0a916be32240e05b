"""A Spark driver whose query runs until its standard input ends: `python -m tests.soak.growth.driver '{"…": …}'`.

It has all that a query in production has: state on `bk://`, the sink, its metrics, and a listener. Three batches of
four are small and go through the driver, the fourth by tasks. The state has the same groups from the fourth batch on.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos
from eos.metrics.progress import Progress
from eos.metrics.prometheus import PrometheusMetrics
from tests.driver_session import driver_session

ROWS = 60
"""Of each batch of the source."""

FEW, MANY = 10, 60
"""Groups that a batch touches, and so rows that it outputs: in three batches of four, and in the fourth."""

_STORE = "spark.sql.streaming.stateStore."
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    # The whole heap is touched at the start: what is resident grows after that only by what is not on the heap.
    "spark.driver.extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch",
    f"{_STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STORE}maintenanceInterval": "20s",
    "spark.hadoop.fs.bk.cache.bytes": "2097152",
    # What Spark, and the file system's cache, keep of batches that are done is full within minutes, not within hours.
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
}
MARKERS_KEPT = 100
_LEAKED_BYTES = 100_000


def groups(spark: SparkSession) -> DataFrame:
    """Count the rows of each group, over the whole stream."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    fourth = F.floor(F.col("value") / ROWS) % 4 == 3
    key = F.when(fourth, F.col("value") % MANY).otherwise(F.col("value") % FEW)
    counts = source.groupBy(key.alias("key")).agg(F.count("*").alias("rows"), F.sum("value").alias("total"))
    return counts.select(F.col("key").cast("string"), F.to_json(F.struct("rows", "total")).alias("value"))


class Leak:
    """What leaks on purpose for each batch: memory, a thread and two sockets."""

    def __init__(self) -> None:
        self._kept: list[object] = []

    def __call__(self) -> None:
        """Leak once more."""
        pair = socket.socketpair()
        waiting = threading.Thread(target=pair[0].recv, args=(1,), daemon=True)
        waiting.start()
        self._kept += [pair, waiting, os.urandom(_LEAKED_BYTES)]


def run(
    service_url: str, topic: str, name: str, checkpoint: str, seconds: float, batches: str, leak: bool = False
) -> None:
    """Run the query until standard input ends.

    Args: where to; the checkpoint's address; seconds between two batches; the file that gets a line of JSON for each
        batch, with its number and the milliseconds of its trigger; whether to leak on purpose.
    """
    spark = driver_session(SETTINGS, bk={})
    leaking = Leak() if leak else None
    with Path(batches).open("a") as lines:

        def note(progress: Progress) -> None:
            told = {"batch": progress.spark.batchId, "ms": progress.spark.durationMs["triggerExecution"]}
            print(json.dumps(told | {"sinks": len(progress.written)}), file=lines, flush=True)
            if leaking is not None:
                leaking()

        listener = eos.listener(note)
        spark.streams.addListener(listener)
        sink = eos.sink(
            service_url,
            topic=topic,
            name=name,
            small_batch_rows=(FEW + MANY) // 2,
            markers_kept=MARKERS_KEPT,
            metrics=[PrometheusMetrics(), listener],
        )
        writer = groups(spark).writeStream.outputMode("update").foreachBatch(sink)
        query = writer.trigger(processingTime=f"{seconds} seconds").option("checkpointLocation", checkpoint).start()

        def stop() -> None:
            sys.stdin.read()
            query.stop()

        threading.Thread(target=stop, daemon=True).start()
        query.awaitTermination()


if __name__ == "__main__":
    arguments: dict[str, Any] = json.loads(sys.argv[1])
    run(**arguments)
