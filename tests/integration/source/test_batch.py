"""Topics as tables."""

from __future__ import annotations

from typing import Any

import httpx
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
