"""A stateful Spark query with its checkpoint on bk://, killed twice and restarted: no row lost, none doubled.

    python kill_and_restart.py eos-bk.jar bk://localhost:2181 hdfs|rocksdb

Needs a running ZooKeeper with bookies. Each batch counts all rows since the beginning and checks them against the rate
source, whose values are 0, 1, 2, …: a state that lost or repeated an update can't pass.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

KILLS = 2
BATCHES_EACH = 3
PATIENCE_S = 300
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run(jar: str, checkpoint: str, provider: str, journal: Path) -> None:
    """Run the query until the process is killed; append `good` or `bad` and the number of rows for each batch."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    options = {
        "spark.jars": jar,
        "spark.driver.extraClassPath": jar,
        "spark.hadoop.fs.bk.impl": "eos.bk.BookKeeperFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.bk.impl": "eos.bk.Bk",
        "spark.sql.shuffle.partitions": "3",
    }
    if provider == "rocksdb":
        options |= {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
            "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
            "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
        }
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()

    def check(rows: DataFrame, _batch: int) -> None:
        counted = [tuple(row) for row in rows.collect()]
        count = sum(row[1] for row in counted)
        good = count == max((row[3] for row in counted), default=-1) + 1
        good = good and sum(row[2] for row in counted) == count * (count - 1) // 2
        with journal.open("a") as out:
            out.write(f"{'good' if good else 'bad'} {count}\n")

    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    counts = rate.groupBy((f.col("value") % 7).alias("k")).agg(f.count("*"), f.sum("value"), f.max("value"))
    query = counts.writeStream.outputMode("complete").foreachBatch(check)
    query.option("checkpointLocation", checkpoint).trigger(processingTime="1 second").start().awaitTermination()


def main(jar: str, address: str, provider: str) -> None:
    """Start the query, kill it after some batches, and so on; the last run must go on where the first began."""
    checkpoint = f"{address}/kill-and-restart-{uuid.uuid4()}"
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder, "journal")
        journal.touch()
        for _ in range(KILLS + 1):
            wanted = len(journal.read_text().splitlines()) + BATCHES_EACH
            job = subprocess.Popen(
                [sys.executable, __file__, jar, checkpoint, provider, str(journal)], start_new_session=True
            )
            deadline = time.monotonic() + PATIENCE_S
            while len(journal.read_text().splitlines()) < wanted and job.poll() is None and time.monotonic() < deadline:
                time.sleep(0.5)
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            batches = [line.split() for line in journal.read_text().splitlines()]
            if len(batches) < wanted or any(verdict != "good" for verdict, _ in batches):
                sys.exit(f"{provider}: the query ended, stalled or miscounted: {batches}")
        counts = [int(count) for _, count in batches]
        if counts != sorted(counts) or counts[-1] == 0:
            sys.exit(f"{provider}: rows were lost over a restart: {counts}")
        print(f"{provider}: {len(batches)} batches over {KILLS} kills, {counts[-1]} rows, all counted once")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        run(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        main(*sys.argv[1:])
