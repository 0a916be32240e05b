"""Every part of a message comes out as the official client put it in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulsar as official
from pyspark.sql import SparkSession

from tests.conftest import MakeTopic
from tests.integration.source.streams import Stream

AT_MS = 1_357_043_400_250


def test_every_column_of_a_message(spark: SparkSession, pulsar: Any, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic("columns", 2)
    client = official.Client(pulsar.service_url)
    producer = client.create_producer(
        f"{topic}-partition-1", batching_enabled=False, compression_type=official.CompressionType.ZSTD
    )
    first = producer.send(
        b"\x00\xff", partition_key="a key", ordering_key="order", event_timestamp=AT_MS, properties={"from": "JFK"}
    )
    producer.send(None)
    producer.send(b"", properties={"": "empty name", "ключ": "значение"})
    client.close()

    rows = Stream(spark, pulsar.service_url, tmp_path / "c", topic=topic).run(None)
    assert [bytes(row.value) if row.value is not None else None for row in rows] == [b"\x00\xff", None, b""]
    one, none, last = rows
    assert (bytes(one["__key"]), bytes(one["__orderingKey"])) == (b"a key", b"order")
    assert one["__eventTime"].astimezone(UTC) == datetime.fromtimestamp(AT_MS / 1000, UTC)
    assert one["__messageProperties"] == {"from": "JFK"}
    assert last["__messageProperties"] == {"": "empty name", "ключ": "значение"}
    assert (one["__topic"], one["__partition"]) == (topic, 1)
    assert tuple(one["__messageId"]) == (first.ledger_id(), first.entry_id(), -1)
    assert abs(one["__publishTime"].timestamp() - datetime.now(UTC).timestamp()) < 600
    assert [none[column] for column in ("__key", "__orderingKey", "__eventTime")] == [None] * 3
    assert none["__messageProperties"] == {}
