"""What the tests of Spark's standalone cluster submit: counts on `bk://`, written by tasks, and where tasks found eos.

    spark-submit … job.py SERVICE_URL TOPIC NAME INPUT CHECKPOINT RESULT

It is run by spark-submit as a user's job is, and imports nothing of the tests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import eos
import statestore


def where(batches: Iterator[Any]) -> Iterator[Any]:
    """Say in which Python a task runs, from where it has eos, and which protobuf it has."""
    import os
    import sys

    import google.protobuf
    import pyarrow as pa

    import eos

    for _ in batches:
        pass
    words = [os.path.realpath(sys.prefix), str(eos.__file__), os.getcwd(), google.protobuf.__version__]
    yield pa.RecordBatch.from_arrays([pa.array([word]) for word in words], names=["python", "eos", "cwd", "protobuf"])


def main(service_url: str, topic: str, name: str, given: str, checkpoint: str, result: str) -> None:
    """Run what is there to its end, and write down what was seen."""
    # As on another machine, where the driver's files are not: what is to be there must be shipped.
    spark = statestore.configure_spark(SparkSession.builder).config("spark.executor.extraClassPath", "").getOrCreate()
    with closing(eos.sink(service_url, topic=topic, name=name, small_batch_rows=0, attempts=2)) as sink:
        counted = spark.readStream.schema("word string").option("maxFilesPerTrigger", 1).csv(given)
        counts = counted.groupBy("word").agg(F.count("*").alias("n"))
        message = F.to_json(F.struct("word", "n")).alias("value")
        query = (
            counts.select(F.col("word").alias("key"), message)
            .writeStream.outputMode("update")
            .foreachBatch(sink)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        committed = sink.metrics.committed
    tasks = (
        spark.range(4, numPartitions=4)
        .mapInArrow(where, "python string, eos string, cwd string, protobuf string")
        .collect()
    )
    seen = {"committed": committed, "tasks": [row.asDict() for row in tasks]}
    Path(result).write_text(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
