"""Spark jobs that tests run in a process of their own: `python jobs.py NAME '{"argument": …}'` prints one JSON line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import statestore


def session(master: str, options: dict[str, str] | None = None) -> SparkSession:
    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "localhost")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    )
    made: SparkSession = statestore.configure_spark(builder, options or {}).getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def count(master: str, checkpoint: str, files: str, options: dict[str, str] | None = None) -> dict[str, object]:
    """Count the words of all files that earlier runs have not seen, on top of what the state knows."""
    spark = session(master, options)
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(files)
    words = lines.groupBy(F.col("value").alias("word")).count()
    query = (
        words.writeStream.outputMode("complete")
        .format("memory")
        .queryName("counts")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counts = {row["word"]: row["count"] for row in spark.table("counts").collect()}
    answer = {"counts": counts, "batch": query.lastProgress["batchId"] if query.lastProgress else None}
    spark.stop()
    return answer


if __name__ == "__main__":
    Path("spark-warehouse").mkdir(exist_ok=True)
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))
