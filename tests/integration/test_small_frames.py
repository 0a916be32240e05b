"""A topic whose policy `maxMessageSize` is far below its brokers' limit: each path of the sink writes to it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import eos
from tests.reading import values_of
from tests.waiting import until

LIMIT = 4000


@pytest.mark.parametrize("small_batch_rows", [0, 10_000], ids=["tasks", "driver"])
def test_small_rows_reach_a_topic_that_takes_small_frames(
    spark: SparkSession, pulsar: Any, make_topic: Any, small_batch_rows: int
) -> None:
    topic = make_topic("small", partitions=2)
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/maxMessageSize"
    httpx.post(url, json=LIMIT, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).text == str(LIMIT))
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1], small_batch_rows=small_batch_rows)
    rows = spark.range(2000).selectExpr("lpad(cast(id as string), 100, '0') value", "cast(id as string) key")
    for batch_id in range(2):
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets {batch_id}")) as txn:
            txn.write(rows)
    expected = sorted(f"{number:0100d}" for number in range(2000) for _ in range(2))
    assert sorted(values_of(pulsar.service_url, topic)) == expected
    sink.close()
