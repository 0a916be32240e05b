"""Copies one topic to another until nothing is left: `python -m tests.integration.source.pipeline '{"source": …}'`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import eos
from eos.steps import Step
from tests.crash.job import Crash
from tests.driver_session import driver_session

TASKS = 6
"""Of a job with the address of an admin API, for the reading and for the writing of a batch."""


def main(job: dict[str, Any]) -> None:
    """Run the copy; with `wait_before_commit` it waits for ever once that batch is written, before Spark commits it.

    With `admin_url` the batches are small, each is read by more tasks than the topic has partitions, and the rows of a
    key are written in their order. The property `part` of a row says in which batch it was read, and by which task.
    With `crash` the driver dies at this step and phase of its second batch, and leaves the file `crashed`.
    """
    spark = driver_session(level="WARN")
    stream = (
        spark.readStream.format("pulsar")
        .option("service.url", job["service_url"])
        .option("topic", job["source"])
        .option("subscription", job["name"])
        .option("startingOffsets", "earliest")
    )
    in_order = "admin_url" in job
    if in_order:
        stream = stream.options(**{"admin.url": job["admin_url"]}, minPartitions=TASKS, maxEntriesPerTrigger=60)
    else:
        stream = stream.schema("value binary, __key binary")
    options: dict[str, Any] = {"small_batch_rows": 0} if in_order else {}  # 0: tasks send the rows, side by side
    if "crash" in job:
        step, phase = job["crash"]
        trace = str(Path(job["checkpoint"]).with_name("crashed"))
        options["observer"] = Crash(Step(step), phase, os.getpgid(0), trace, batch=2)
    sink = eos.sink(job["service_url"], topic=job["copies"], name=job["name"], **options)

    def copy(batch: DataFrame, number: int) -> None:
        sink(ordered(batch, number) if in_order else batch, number)
        if str(number) == job.get("wait_before_commit"):
            Path(job["checkpoint"]).joinpath(f"written-{number}").touch()
            time.sleep(3_600)

    query = (
        stream.load()
        .writeStream.foreachBatch(copy)
        .option("checkpointLocation", job["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def ordered(batch: DataFrame, number: int) -> DataFrame:
    """Return the rows with those of a key in one partition and in their order, as docs/reference/source.md does it."""
    part = F.create_map(F.lit("part"), F.concat_ws(" ", F.lit(number), F.spark_partition_id()))
    rows = batch.withColumn("__messageProperties", part)
    rows = rows.mapInArrow(backwards, rows.schema)
    return rows.repartition(TASKS, "__key").sortWithinPartitions("__partition", "__messageId").drop("__partition")


def backwards(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows in another order, as a job's own work may."""
    for batch in batches:
        yield batch.take(pa.array(range(batch.num_rows)[::-1], pa.int64()))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
