"""Values of the official client arrive equal, field by field, and as the official client reads it."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import httpx
import pulsar as official
import pyarrow as pa
import pytest

from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.chunks import ChunkAssembler
from eos.pulsar.wire.compression import TYPES, compress
from eos.pulsar.wire.decoding import COLUMNS, decode
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from tests.conftest import MakeTopic
from tests.contract.conftest import Produce, Running
from tests.contract.official import fresh_consumer, read_until
from tests.contract.test_entries import read_all, write
from tests.schema_pairs import TYPES as PAIRED_TYPES
from tests.schema_pairs import schema_of, wrongly_read
from tests.waiting import until

COMPRESSIONS = {
    "none": official.CompressionType.NONE,
    "lz4": official.CompressionType.LZ4,
    "zlib": official.CompressionType.ZLib,
    "zstd": official.CompressionType.ZSTD,
    "snappy": official.CompressionType.SNAPPY,
}


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
    pulsar: Running, theirs: official.Client, ours: Client, make_topic: MakeTopic, compression: str, batching: int
) -> None:
    topic = make_topic("d-mix")
    producer = theirs.create_producer(
        topic,
        producer_name=f"writer of {topic}",
        compression_type=COMPRESSIONS[compression],
        batching_enabled=batching > 0,
        batching_max_messages=max(2, batching),
        batching_max_publish_delay_ms=1000,
    )
    # pulsar-client 3.13 throws away as corrupt what it has itself packed by zlib out of no bytes at all.
    sent = [row for row in messages() if row["content"] or batching or compression != "zlib"]
    for row in sent:
        producer.send_async(callback=lambda *_: None, **row)
    producer.flush()
    producer.close()
    entries = read_all(ours, topic)
    assert any(entry.batched for entry in entries) == (batching > 0)
    rows = decode(entries, list(COLUMNS)).to_pylist()
    with fresh_consumer(pulsar.service_url, topic) as consumer:
        received = [consumer.receive(60_000) for _ in sent]
    assert [row["value"] for row in rows] == [row["content"] for row in sent]
    for row, wrote, read in zip(rows, sent, received, strict=True):
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


def test_messages_in_chunks_are_put_together_as_the_official_client_does(
    pulsar: Running, ours: Client, produce: Produce, make_topic: MakeTopic
) -> None:
    topic = make_topic("d-chunks")
    producer = produce(topic)
    packed = bytes(compress(b"large" * 1000, "zlib"))

    def chunk(number: int, part: bytes) -> None:
        metadata = MessageMetadata(producer_name=producer.name, sequence_id=7, publish_time=1, partition_key=b"k")
        metadata.uuid, metadata.chunk_id, metadata.num_chunks_from_msg = f"{producer.name}-7", number, 3
        metadata.total_chunk_msg_size = len(packed)
        metadata.compression, metadata.uncompressed_size = TYPES["zlib"], 5000
        producer.send_described(metadata, part)

    chunk(0, packed[:10])
    producer.send(b"between", None, 8)
    chunk(1, packed[10:20])
    chunk(2, packed[20:])
    producer.send(b"behind", None, 9)
    places = [producer.event() for _ in range(5)]
    assert read_until(pulsar.service_url, topic, b"behind") == [b"between", b"large" * 1000, b"behind"]
    assembler = ChunkAssembler()
    whole = [one for one in map(assembler.take, read_all(ours, topic)) if one is not None]
    decoded = decode(whole, ["value", "key"])
    assert decoded.column("value").to_pylist() == [b"between", b"large" * 1000, b"behind"]
    assert decoded.column("key").to_pylist() == [None, b"k", None]
    last_chunk = places[3]
    assert isinstance(last_chunk, MessageId)
    assert whole[1].id == EntryId(last_chunk.ledger, last_chunk.entry)


def test_what_compaction_left_is_read_and_then_the_rest(pulsar: Running, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("d-compacted")
    with ours.producer(topic) as producer:
        for value, keys in ((b"old", "ab"), (b"new", "bc")):
            rows = pa.record_batch({"value": [value] * 2, "key": list(keys)})
            for chunk in BatchEncoder().chunks(rows):
                producer.send(chunk, None)
    where = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"
    httpx.put(where, timeout=30).raise_for_status()
    until(lambda: httpx.get(where, timeout=30).json()["status"] == "SUCCESS", "the topic was not compacted")
    write(ours, topic, [b"behind"])
    read = decode(read_all(ours, topic, compacted=True), ["value", "key", "message_id"]).to_pylist()
    assert [(row["key"], row["value"]) for row in read] == [
        (b"a", b"old"),
        (b"b", b"new"),
        (b"c", b"new"),
        (None, b"behind"),
    ]
    assert [row["message_id"]["batch_index"] for row in read] == [0, 0, 1, 0]
    assert decode(read_all(ours, topic), []).num_rows == 5


# ---- versions of a schema


ACCEPTED_AT_LEAST = {
    ("int", "long"),
    ("int", "date"),
    ("long", "timestamp-millis"),
    ("timestamp-millis", "timestamp-micros"),
    ("bytes", "string"),
    ("decimal", "finer decimal"),
}
"""Pairs that Avro's own rules allow: without them nothing would be tried here."""


@pytest.mark.parametrize("form", ["AVRO", "JSON"])
def test_each_pair_that_the_broker_accepts_is_read_with_its_meaning_or_refused(
    pulsar: Any, make_topic: MakeTopic, form: str
) -> None:
    accepted = set()
    with httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2", timeout=30, follow_redirects=True) as admin:
        for before, kind in PAIRED_TYPES.items():
            topic = make_topic(f"versions-{form}").removeprefix("persistent://")

            def body(schema: Any) -> dict[str, Any]:
                return {"type": form, "schema": json.dumps(schema), "properties": {}}

            admin.post(f"/schemas/{topic}/schema", json=body(schema_of(kind))).raise_for_status()
            admin.put(f"/persistent/{topic}/schemaCompatibilityStrategy", json="BACKWARD").raise_for_status()
            for now, other in PAIRED_TYPES.items():
                asked = admin.post(f"/schemas/{topic}/compatibility", json=body(schema_of(other)))
                if asked.status_code == httpx.codes.ACCEPTED and asked.json()["compatibility"]:
                    accepted.add((before, now))  # this broker answers a pair that it refuses with 500, and the reason
    assert accepted >= ACCEPTED_AT_LEAST
    assert [words for before, now in sorted(accepted) if (words := wrongly_read(form, before, now))] == []
