"""The client of tests/soak/test_spark_connect.py, a process without a JVM: `python -m tests.soak.connect_verbs JSON`.

Prints a line of JSON with what each verb gave: rows, or the words of the refusal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import eos


def rows(df: DataFrame) -> list[str]:
    """Return the values, sorted as numbers."""
    return sorted((row.v for row in df.selectExpr("string(value) as v").collect()), key=int)


def refusal(call: Callable[[], Any]) -> str:
    """Return the words of an error. Raises AssertionError where there is none."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("it was not refused")


def stream(spark: SparkSession, given: Mapping[str, str]) -> None:
    """Copy what is new from one topic to another."""
    reader = spark.readStream.format("pulsar").option("service.url", given["service_url"])
    reader = reader.option("topic", given["topic"]).option("subscription", "connect")
    copied = reader.option("startingOffsets", "earliest").load().select("value", "__key")
    writer = copied.writeStream.format("pulsar").option("service.url", given["service_url"])
    writer = writer.option("topic", given["copies"]).option("guarantee", "at-least-once")
    query = writer.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True).start()
    assert query.awaitTermination(180), query.status


def verbs(spark: SparkSession, given: Mapping[str, str]) -> dict[str, Any]:
    """Use each verb once."""
    read = spark.read.format("pulsar").option("service.url", given["service_url"])
    table = read.option("topic", given["topic"]).load()

    def write(numbers: range) -> None:
        df = spark.range(numbers.start, numbers.stop).selectExpr("string(id) as value", "string(id % 3) as key")
        writer = df.write.format("pulsar").mode("append").option("service.url", given["service_url"])
        writer.option("topic", given["topic"]).option("guarantee", "at-least-once").save()

    found: dict[str, Any] = {}
    write(range(10))
    found["read"] = rows(table)
    found["filter"] = rows(table.where("string(__key) = '1'"))
    found["count"] = table.count()
    table.createOrReplaceTempView("events")
    found["sql"] = spark.sql("select count(distinct __key) as n from events").first()[0]  # type: ignore[index]
    stream(spark, given)
    write(range(10, 15))
    stream(spark, given)
    found["stream"] = rows(read.option("topic", given["copies"]).load())
    url, topic = given["service_url"], given["topic"]
    found["eos.write"] = refusal(lambda: eos.write(table.select("value"), url, topic=topic, job_id="connect"))
    found["eos.sink"] = refusal(lambda: sink(spark, given))
    found["eos.configure_spark"] = refusal(
        lambda: (
            eos.configure_spark(SparkSession.builder, service_url=url).getOrCreate().sql("show namespaces in pulsar")
        )
    )
    return found


def sink(spark: SparkSession, given: Mapping[str, str]) -> None:
    """Give the exactly-once sink to a query of Spark Connect."""
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    to = eos.sink(given["service_url"], topic=given["copies"], name="connect")
    query = numbers.selectExpr("string(value) as value").writeStream.foreachBatch(to).trigger(once=True)
    query.option("checkpointLocation", f"{given['checkpoint']}-sink").start().awaitTermination(120)


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    session = SparkSession.builder.remote(told["address"]).getOrCreate()
    print(json.dumps(verbs(session, told)))
