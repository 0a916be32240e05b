"""Small batches go out by producers that the driver keeps open, as the broker sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import eos
from tests.reading import values_of
from tests.waiting import until

Publishers = Callable[[str, int], list[str]]


@pytest.fixture
def admin(pulsar: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2", timeout=30) as client:
        yield client


@pytest.fixture
def publishers(admin: httpx.Client) -> Publishers:
    """Wait until the broker knows so many producers of a topic, and return their names."""

    def ask(topic: str, number: int) -> list[str]:
        def names() -> list[str]:
            stats = admin.get(f"/{topic.replace('://', '/')}/stats").raise_for_status().json()
            return [one["producerName"] for one in stats["publishers"]]

        until(lambda: len(names()) == number, names)
        return names()

    return ask


def write(spark: SparkSession, sink: eos.Sink, *batches: int) -> None:
    for batch_id in batches:
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets of batch {batch_id}")) as txn:
            txn.write(spark.sql(f"select '{batch_id}' value"))


def test_the_driver_s_producer_stays_open_until_the_sink_is_closed(
    spark: SparkSession, pulsar: Any, make_topic: Any, publishers: Publishers
) -> None:
    topic = make_topic("stays-open")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    write(spark, sink, 0, 1)
    (name,) = publishers(topic, 1)
    write(spark, sink, 2, 3)
    assert publishers(topic, 1) == [name]
    sink.close()
    publishers(topic, 0)
    write(spark, sink, 4)
    assert values_of(pulsar.service_url, topic) == ["0", "1", "2", "3", "4"]


def test_a_topic_that_was_unloaded_between_two_batches_costs_no_second_try(
    spark: SparkSession, pulsar: Any, make_topic: Any, publishers: Publishers, admin: httpx.Client
) -> None:
    topic = make_topic("unloaded")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    write(spark, sink, 0, 1)
    (before,) = publishers(topic, 1)
    admin.put(f"/{topic.replace('://', '/')}/unload").raise_for_status()
    write(spark, sink, 2)
    (after,) = publishers(topic, 1)
    assert before != after
    assert sink.metrics.attempts == 3
    assert values_of(pulsar.service_url, topic) == ["0", "1", "2"]


def test_two_writes_to_one_topic_have_a_producer_each_and_leave_one_open(
    spark: SparkSession, pulsar: Any, make_topic: Any, publishers: Publishers
) -> None:
    topic = make_topic("two-writes")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    for batch_id in range(3):
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets of batch {batch_id}")) as txn:
            txn.write(spark.sql(f"select '{batch_id}a' value"))
            txn.write(spark.sql(f"select '{batch_id}b' value"))
    publishers(topic, 1)
    assert sorted(values_of(pulsar.service_url, topic)) == ["0a", "0b", "1a", "1b", "2a", "2b"]
