"""`select("*")` of a source is written as it is, by each door, to the topic that the caller names."""

from __future__ import annotations

import logging
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
    """What is kept of each topic's rows, by one read: to plan a read takes Spark seconds on a busy machine."""
    rows = rows_of(spark, pulsar, *topics).select("__topic", *KEPT).collect()
    return {topic: sorted(str(row[1:]) for row in rows if row[0] == topic) for topic in topics}


def test_all_columns_of_a_source_are_taken_and_the_topic_that_is_given_wins(
    spark: SparkSession,
    pulsar: Any,
    theirs: official.Client,
    make_topic: MakeTopic,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, by_job, by_sink, by_name = (make_topic(name, partitions=2) for name in ("source", "job", "sink", "name"))
    producer = theirs.create_producer(source, batching_enabled=False)
    for number in range(12):
        more: dict[str, Any] = {"partition_key": f"k{number}", "ordering_key": f"o{number}"} if number % 3 else {}
        producer.send(b"%d" % number, event_timestamp=1_000 + number, properties={"n": str(number)}, **more)
    producer.close()
    table = rows_of(spark, pulsar, source)

    eos.write(table, pulsar.service_url, topic=by_job, job_id=by_job.rpartition("/")[2])
    name = by_sink.rpartition("/")[2]
    sink = eos.sink(pulsar.service_url, topic=by_sink, name=name)
    with caplog.at_level(logging.INFO, "eos.sink"):
        roles = sink.check(table)
        for batch in (0, 1):
            with sink.batch(batch, eos.Identity("query", "run", f"offsets {batch}")) as txn:
                txn.write(table if batch == 0 else table.where("false"))
    sink.close()
    given = {"service.url": pulsar.service_url, "topic": by_name, "guarantee": "at-least-once"}
    table.write.format("pulsar").options(**given).mode("append").save()

    found = kept(spark, pulsar, source, by_job, by_sink, by_name)
    assert len(found[source]) == 12, "the source's topic has got nothing"
    assert all(rows == found[source] for rows in found.values())
    assert set(roles.unused) == UNUSED
    told = [one for one in caplog.messages if "is not written" in one]
    assert len(told) == len(UNUSED), "each column is named once, and not in each batch"
    assert any(f"'__topic' is not written, since topic='{by_sink}' is given" in one for one in told)
