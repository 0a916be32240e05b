"""Reading and writing by `format("pulsar")`, as a process of the Spark under test.

    python -m tests.matrix.by_name PART '{"service_url": …, "topic": …, "folder": …, "values": […]}'

Ends with 0 where all rows were right; an error of Spark's or ours ends it otherwise.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from eos.by_name.session import register
from eos.spark.capabilities import Capability, has
from tests.driver_session import driver_session


def read_stream(spark: SparkSession, given: dict[str, Any]) -> None:
    """Read the topic in small batches, and then what comes after a restart."""
    seen: list[str] = []

    def take(batch: DataFrame, _: int) -> None:
        seen.extend(bytes(row.value).decode() for row in batch.select("value").collect())

    reader = spark.readStream.format("pulsar").option("service.url", given["service_url"])
    reader = reader.option("topic", given["topic"]).option("startingOffsets", "earliest")
    reader = reader.option("subscription", "matrix").option("maxEntriesPerTrigger", 5)
    for _ in range(2):
        query = (
            reader.load()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", given["folder"])
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    must_be(seen, given["values"])


def read_table(spark: SparkSession, given: dict[str, Any]) -> None:
    """Read all that the topic holds."""
    reader = spark.read.format("pulsar").option("service.url", given["service_url"]).option("topic", given["topic"])
    must_be([bytes(row.value).decode() for row in reader.load().select("value").collect()], given["values"])


def write_table(spark: SparkSession, given: dict[str, Any]) -> None:
    """Write the rows by name, at least once."""
    rows = spark.createDataFrame([(value,) for value in given["values"]], "value string")
    writer = rows.write.format("pulsar").option("service.url", given["service_url"]).option("topic", given["topic"])
    writer.option("guarantee", "at-least-once").mode("append").save()


def must_be(found: list[str], wanted: list[str]) -> None:
    """Raise AssertionError unless both have the same rows, in any order."""
    assert sorted(found) == sorted(wanted), f"{len(found)} rows, {len(wanted)} wanted"


PARTS = {"read-stream": read_stream, "read-table": read_table, "write-table": write_table}


def main() -> None:
    """Run one part."""
    spark = driver_session()
    if not has(Capability.PYTHON_SOURCES):
        register(spark)  # refuses in words: Spark itself would look for a class named pulsar
    PARTS[sys.argv[1]](spark, json.loads(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
