"""`select("*")` of a source is written as it is, by each door, to the topic that the caller names."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pulsar as official
import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from tests.conftest import MakeTopic

KEPT = ("value", "__key", "__partition", "__eventTime", "__messageProperties", "__orderingKey")
UNUSED = {"__topic", "__messageId", "__publishTime"}


def rows_of(spark: SparkSession, pulsar: Any, *topics: str) -> DataFrame:
    given = {"service.url": pulsar.service_url, "topics": ",".join(topics)}
    return spark.read.format("pulsar").options(**given).load()


def kept(spark: SparkSession, pulsar: Any, *topics: str) -> dict[str, list[str]]:
    """The rows of each topic, kept from one read: to plan a read takes Spark seconds on a busy machine."""
    rows = rows_of(spark, pulsar, *topics).select("__topic", *KEPT).collect()
    return {topic: sorted(str(row[1:]) for row in rows if row[0] == topic) for topic in topics}


def by_sink(table: DataFrame, url: str, topic: str) -> None:
    sink = eos.sink(url, topic=topic, name=topic.rpartition("/")[2])
    roles = sink.check(table)
    for batch in (0, 1):
        with sink.batch(batch, eos.Identity("query", "run", f"offsets {batch}")) as txn:
            txn.write(table if batch == 0 else table.where("false"))
    sink.close()
    assert set(roles.unused) == UNUSED


def by_job(table: DataFrame, url: str, topic: str) -> None:
    eos.write(table, url, topic=topic, job_id=topic.rpartition("/")[2])


def by_name(table: DataFrame, url: str, topic: str) -> None:
    given = {"service.url": url, "topic": topic, "guarantee": "at-least-once"}
    table.write.format("pulsar").options(**given).mode("append").save()


@pytest.mark.parametrize("write", [by_sink, by_job, pytest.param(by_name, marks=pytest.mark.soak)])
def test_all_columns_of_a_source_are_taken_and_the_topic_that_is_given_wins(
    spark: SparkSession,
    pulsar: Any,
    theirs: official.Client,
    make_topic: MakeTopic,
    caplog: pytest.LogCaptureFixture,
    write: Callable[[DataFrame, str, str], None],
) -> None:
    source, copy = (make_topic(name, partitions=2) for name in ("source", "copy"))
    producer = theirs.create_producer(source, batching_enabled=False)
    for number in range(12):
        more: dict[str, Any] = {"partition_key": f"k{number}", "ordering_key": f"o{number}"} if number % 3 else {}
        producer.send(b"%d" % number, event_timestamp=1_000 + number, properties={"n": str(number)}, **more)
    producer.close()
    with caplog.at_level(logging.INFO, "eos.sink"):
        write(rows_of(spark, pulsar, source), pulsar.service_url, copy)

    found = kept(spark, pulsar, source, copy)
    assert len(found[source]) == 12, "the source's topic has got nothing"
    assert found[copy] == found[source]
    if write is not by_name:  # whose writer is planned in a process of Spark's
        told = [one for one in caplog.messages if "is not written" in one]
        assert len(told) == len(UNUSED), "each column is named once, and not in each batch"
        assert any(f"'__topic' is not written, since topic='{copy}' is given" in one for one in told)
