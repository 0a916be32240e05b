"""Topics as tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from eos.pulsar.net.client import Client
from tests.conftest import MakeTopic
from tests.integration.source.streams import write


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
