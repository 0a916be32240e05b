"""Topics as tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pulsar as official
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from eos.pulsar.net.client import Client
from tests.conftest import MakeTopic
from tests.integration.source.conftest import Admin
from tests.integration.source.streams import write
from tests.waiting import until


def test_a_topic_is_a_table_and_no_subscription_is_left(
    spark: SparkSession, pulsar: Any, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("table", 2)
    for partition in range(2):
        write(ours, f"{topic}-partition-{partition}", *(f"{partition}-{number}" for number in range(10)))
    source = spark.read.format("pulsar").option("service.url", pulsar.service_url).option("topic", topic)
    table = source.schema("value string, __partition int").load()
    counted = table.groupBy("__partition").agg(F.count("*").alias("rows"), F.max("value").alias("last"))
    assert sorted(map(tuple, counted.collect())) == [(0, 10, "0-9"), (1, 10, "1-9")]
    assert (
        spark.read.format("pulsar")
        .options(**{"service.url": pulsar.service_url}, topic=make_topic("none"))
        .load()
        .collect()
        == []
    )
    for partition in range(2):
        path = topic.replace("://", "/")
        stats = httpx.get(f"{pulsar.admin_url}/admin/v2/{path}-partition-{partition}/stats", timeout=30).json()
        assert stats["subscriptions"] == {}


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", True)
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.usefixtures("pushing")
def test_filters_on_topic_partition_and_time_are_pushed_down(
    spark: SparkSession, pulsar: Any, ours: Client, make_topic: MakeTopic
) -> None:
    topic, other = make_topic("pushed", 3), make_topic("other")
    for partition in range(3):
        write(ours, f"{topic}-partition-{partition}", "a", "b")
    write(ours, other, "c")
    source = spark.read.format("pulsar").options(**{"service.url": pulsar.service_url}, topics=f"{topic},{other}")
    table = source.schema("value string, __topic string, __partition int, __publishTime timestamp").load()

    def read(where: str) -> tuple[int, list[str]]:
        frame = table.where(where)
        return frame.rdd.getNumPartitions(), sorted(row.value for row in frame.collect())

    assert read("value is not null") == (4, ["a", "a", "a", "b", "b", "b", "c"])
    assert read("__partition >= 1") == (2, ["a", "a", "b", "b"])
    assert read(f"__topic = '{other}'") == (1, ["c"])
    assert read(f"__topic = '{topic}' and __partition in (0, 2) and value = 'a'") == (2, ["a", "a"])
    now = datetime.now(UTC)
    assert read(f"__publishTime > timestamp '{now - timedelta(minutes=30)}'")[1] == ["a", "a", "a", "b", "b", "b", "c"]
    assert read(f"__publishTime > timestamp '{now + timedelta(hours=2)}'") == (1, []), "nothing is planned to be read"
    assert read(f"__publishTime < timestamp '{now - timedelta(hours=2)}'") == (1, [])


def test_what_compaction_left_is_a_table_of_the_newest_messages(
    spark: SparkSession, pulsar: Any, theirs: official.Client, make_topic: MakeTopic, admin: Admin
) -> None:
    topic = make_topic("compacted")
    compaction = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"

    def send(*pairs: tuple[str, str]) -> None:
        producer = theirs.create_producer(topic, batching_enabled=False)
        for key, value in pairs:
            producer.send(value.encode(), partition_key=key)
        producer.close()

    def compact() -> None:
        httpx.put(compaction, timeout=30).raise_for_status()
        until(lambda: httpx.get(compaction, timeout=30).json()["status"] == "SUCCESS", "the topic was not compacted")

    def frame(**options: str) -> DataFrame:
        source = spark.read.format("pulsar").options(**{"service.url": pulsar.service_url}, topic=topic, **options)
        return source.schema("__key string, value string").load()

    def table(**options: str) -> list[tuple[str, str]]:
        return [tuple(row) for row in frame(**options).collect()]

    send(("a", "1"), ("b", "1"), ("a", "2"), ("b", ""))  # the last message deletes its key, and is taken away itself
    compact()
    assert table(readCompacted="true") == [("a", "2")]
    assert len(table()) == 4
    admin("PUT", topic, "unload")
    send(("c", "1"), ("a", "3"))
    assert table(readCompacted="true") == [("a", "2"), ("c", "1"), ("a", "3")]
    cut = {"admin.url": pulsar.admin_url, "minPartitions": "3"}
    assert sorted(table(readCompacted="true", **cut)) == [("a", "2"), ("a", "3"), ("c", "1")]
    planned = frame(readCompacted="true")
    assert len(planned.collect()) == 3
    send(("a", "4"), ("d", "1"))
    compact()  # the message of `a` that was there when the read was planned is gone
    assert sorted(tuple(row) for row in planned.collect()) == [("a", "4"), ("c", "1"), ("d", "1")]
