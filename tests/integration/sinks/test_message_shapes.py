"""Rows that are delivered later, and rows that are larger than brokers take, through the sink on both of its paths."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pulsar as official
import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.inspect.audit import audit
from eos.steps import Step
from tests.crash.moments import KillWorker, Moment, Witness
from tests.reading import messages_of

LARGE = 11_000_000
DELAY_S = 5
TICK_S = 1.0  # a broker may deliver so much earlier


def identity(batch_id: int) -> eos.Identity:
    return eos.Identity("query", "run", f"offsets of batch {batch_id}")


def name_of(topic: str) -> str:
    return topic.rsplit("/")[-1]


def large_between_small_ones(spark: SparkSession) -> DataFrame:
    """Four rows of one key; the first and the third are larger than a broker takes."""
    size = f"if(id % 2 = 0, {LARGE}, 3)"
    return spark.range(4).coalesce(1).selectExpr(f"rpad(cast(id as string), {size}, 'x') value", "'k' key")


def expected() -> list[tuple[str, int]]:
    return [(str(number), LARGE if number % 2 == 0 else 3) for number in range(4)]


def found(pulsar: Any, topic: str) -> list[tuple[str, int]]:
    return [(m.data()[:1].decode(), len(m.data())) for m in messages_of(pulsar.service_url, topic)]


@pytest.mark.parametrize("small_batch_rows", [0, 1_000], ids=["tasks", "driver"])
def test_a_row_larger_than_brokers_take_arrives_in_its_place(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, small_batch_rows: int
) -> None:
    topic = make_topic("chunked")
    witness = Witness(str(tmp_path / "steps"))
    sink = eos.sink(
        pulsar.service_url,
        topic=topic,
        name=name_of(topic),
        small_batch_rows=small_batch_rows,
        chunking=True,
        observer=witness,
    )
    for batch_id, rows in enumerate([spark.sql("select '-' value, 'k' key"), large_between_small_ones(spark)]):
        with sink.batch(batch_id, identity(batch_id)) as txn:
            txn.write(rows)
    sink.close()
    assert (os.getpid() in witness.pids(Step.FIRST_SEND, 1)) == (small_batch_rows > 0)
    assert (sink.metrics.rows, sink.metrics.committed, sink.metrics.attempts) == (5, 2, 2)
    where = sink._context
    assert audit(where.client, where.cluster, name_of(topic), "public/default").discrepancies == ()
    options = {"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "topic": topic}
    by_source = spark.read.format("pulsar").options(**options).load()
    columns = ["left(cast(value as string), 1) first", "length(value) size", "__messageId.entry"]
    read = sorted(by_source.selectExpr(*columns).collect(), key=lambda row: row["entry"])
    assert [(row["first"], row["size"]) for row in read] == [("-", 1), *expected()]
    assert found(pulsar, topic) == [("-", 1), *expected()]


def test_a_worker_that_dies_between_two_chunks_leaves_nothing(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    """The first frame of the task is the first chunk of three."""
    topic = make_topic("chunk-died")
    kill = KillWorker(Moment(Step.FIRST_SEND, "after", 0), str(tmp_path), os.getpid())
    sink = eos.sink(
        pulsar.service_url, topic=topic, name=name_of(topic), small_batch_rows=0, chunking=True, observer=kill
    )
    with sink.batch(0, identity(0)) as txn:
        txn.write(large_between_small_ones(spark))
    sink.close()
    assert (tmp_path / "killed").exists()
    assert sink.metrics.attempts == 2
    assert found(pulsar, topic) == expected()


def test_a_shared_subscription_gets_a_row_at_its_time(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: Any
) -> None:
    topic = make_topic("delayed", partitions=2)
    consumer = theirs.subscribe(topic, "shared", official.ConsumerType.Shared)
    sink = eos.sink(pulsar.service_url, topic=topic, name=name_of(topic))
    with sink.batch(0, identity(0)) as txn:
        txn.write(spark.sql("select 'first' value, cast(null as bigint) deliver_at"))
    due = datetime.now(UTC) + timedelta(seconds=DELAY_S)
    past = due - timedelta(days=1)
    rows = [("at once", "k", None), ("in the past", "k", past), ("later", "k", due), ("later too", "m", due)]
    with sink.batch(1, identity(1)) as txn:
        txn.write(spark.createDataFrame(rows, "value string, key string, deliver_at timestamp"))
    sink.close()
    came = {consumer.receive(60_000).data().decode(): time.time() for _ in range(5)}
    assert came.keys() == {"first", "at once", "in the past", "later", "later too"}
    assert min(came["later"], came["later too"]) >= due.timestamp() - TICK_S


def test_an_impossible_time_of_delivery_is_named_and_nothing_is_visible(
    spark: SparkSession, pulsar: Any, make_topic: Any
) -> None:
    topic = make_topic("never")
    sink = eos.sink(pulsar.service_url, topic=topic, name=name_of(topic))
    rows = (
        spark.range(3).coalesce(1).selectExpr("cast(id as string) value", "if(id = 2, 1790000000000000, 1) deliver_at")
    )
    with (
        pytest.raises(eos.InvalidInput, match=r"row 2 .*1790000000000000 ms, which is after the year 9999"),
        sink.batch(0, identity(0)) as txn,
    ):
        txn.write(rows)
    sink.close()
    assert found(pulsar, topic) == []
