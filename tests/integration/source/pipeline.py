"""Copies one topic to another until nothing is left: `python -m tests.integration.source.pipeline '{"source": …}'`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import eos


def main(job: dict[str, str]) -> None:
    """Run the copy; with `wait_before_commit` it waits for ever once that batch is written, before Spark commits it."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "localhost")
        .getOrCreate()
    )
    frame = (
        spark.readStream.format("pulsar")
        .option("service.url", job["service_url"])
        .option("topic", job["source"])
        .option("subscription", job["name"])
        .option("startingOffsets", "earliest")
        .schema("value binary, __key binary")
        .load()
    )
    sink = eos.sink(job["service_url"], topic=job["copies"], name=job["name"])

    def copy(batch: DataFrame, number: int) -> None:
        sink(batch, number)
        if str(number) == job.get("wait_before_commit"):
            Path(job["checkpoint"]).joinpath(f"written-{number}").touch()
            time.sleep(3_600)

    query = (
        frame.writeStream.foreachBatch(copy)
        .option("checkpointLocation", job["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
