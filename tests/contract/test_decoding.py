"""What the official client writes arrives equal, field by field, and as the official client reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import product
from typing import Any

import pulsar as official
import pytest

from eos.pulsar.net.client import Client
from eos.pulsar.wire.decoding import COLUMNS, decode
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.contract.official import fresh_consumer
from tests.contract.test_entries import read_all

COMPRESSIONS = {
    "none": official.CompressionType.NONE,
    "lz4": official.CompressionType.LZ4,
    "zlib": official.CompressionType.ZLib,
    "zstd": official.CompressionType.ZSTD,
    "snappy": official.CompressionType.SNAPPY,
}


@pytest.fixture
def client(pulsar: Running) -> Iterator[official.Client]:
    opened = official.Client(pulsar.service_url, logger=logging.getLogger("tests.official_client"))
    yield opened
    opened.close()


def messages() -> list[dict[str, Any]]:
    """Every mix of the fields, with empty and lookalike values, two rounds of it."""
    mixes = product([None, "key", "k\u00fc"], [None, "order"], [None, 1_700_000_000_123], [{}, {"a": "b", "ü": ""}])
    rows = []
    for round_, (key, ordering, event_time, properties) in enumerate([*mixes] * 2):
        value = [b"", b"\0" * 50, b"\0\0\0\x02\x18\x01v", b"plain %d" % round_][round_ % 4]
        row: dict[str, Any] = {"content": value, "properties": properties}
        if key is not None:
            row["partition_key"] = key
        if ordering is not None:
            row["ordering_key"] = ordering
        if event_time is not None:
            row["event_timestamp"] = event_time
        rows.append(row)
    return rows


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("batching", [0, 2, 47, 1000])
def test_every_mix_of_fields_arrives_equal(
    pulsar: Running, client: official.Client, ours: Client, make_topic: MakeTopic, compression: str, batching: int
) -> None:
    topic = make_topic("d-mix")
    producer = client.create_producer(
        topic,
        producer_name=f"writer of {topic}",
        compression_type=COMPRESSIONS[compression],
        batching_enabled=batching > 0,
        batching_max_messages=max(2, batching),
        batching_max_publish_delay_ms=1000,
    )
    sent = messages()
    for row in sent:
        producer.send_async(callback=lambda *_: None, **row)
    producer.flush()
    producer.close()
    entries = read_all(ours, topic)
    assert any(entry.batched for entry in entries) == (batching > 0)
    rows = decode(entries, list(COLUMNS)).to_pylist()
    with fresh_consumer(pulsar.service_url, topic) as consumer:
        theirs = [consumer.receive(20_000) for _ in sent]
    assert [row["value"] for row in rows] == [row["content"] for row in sent]
    for row, wrote, read in zip(rows, sent, theirs, strict=True):
        key, ordering = wrote.get("partition_key"), wrote.get("ordering_key")
        assert row["key"] == (None if key is None else key.encode())
        assert row["ordering_key"] == (None if ordering is None else ordering.encode())
        assert row["event_time"] == wrote.get("event_timestamp")
        assert dict(row["properties"]) == wrote["properties"]
        where = read.message_id()
        assert row["message_id"] == {
            "ledger": where.ledger_id(),
            "entry": where.entry_id(),
            "batch_index": where.batch_index(),
        }
        assert row["publish_time"] == read.publish_timestamp()
        assert row["producer_name"] == read.producer_name()
