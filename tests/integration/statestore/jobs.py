"""Spark jobs that tests run in a process of their own: `start_job` of conftest.py. Each prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import functions as F

from tests.driver_session import driver_session

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
# Snapshots and cleaning after few batches and at once, so that files go while they are copied.
HASTE = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
}


def count(
    master: str,
    checkpoint: str,
    files: str,
    options: dict[str, str] | None = None,
    provider: str = "hdfs",
    until: str | None = None,
) -> dict[str, object]:
    """Count the words of all files that earlier runs have not seen, on top of what the state knows.

    With `until` it goes on with new files until there is one of that name, and cleans up in haste.
    """
    conf = (ROCKSDB if provider == "rocksdb" else {}) | (HASTE if until else {})
    conf["spark.executor.extraJavaOptions"] = "-XX:TieredStopAtLevel=1"
    spark = driver_session(conf, master=master, bk=options or {})
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(files)
    words = lines.groupBy(F.col("value").alias("word")).count()
    writer = words.writeStream.outputMode("complete").format("memory").queryName("counts")
    writer = writer.option("checkpointLocation", checkpoint)
    query = (writer if until else writer.trigger(availableNow=True)).start()
    while until and query.isActive and not Path(until).exists():
        time.sleep(0.1)
    if until and query.isActive:
        query.processAllAvailable()
        query.stop()
    query.awaitTermination()
    counts = {row["word"]: row["count"] for row in spark.table("counts").collect()}
    progress = query.lastProgress
    spark.stop()
    return {"counts": counts, "batch": progress["batchId"] if progress else None}


if __name__ == "__main__":
    Path("spark-warehouse").mkdir(exist_ok=True)
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))
