"""The frames of eos.pulsar.wire, read by the broker's own classes and by the official Python client."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar as official
import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from eos.config import COMPRESSION_OPTIONS, CompressionOption
from eos.pulsar.net.client import Client
from eos.pulsar.wire import pulsar_pb2
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.routing import partition_of
from tests.conftest import MakeTopic, RunningPulsar
from tests.vectors.broker_classes import ask
from tests.vectors.frames import rows
from tests.vectors.make import BOOST_PARTITIONS, boost_partitions, frame_vectors, hash_vectors, schema_vectors

VECTORS = Path(__file__).parents[1] / "vectors"

# Wire types, by protobuf's kinds of field; this schema has no others.
TEXTUAL = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def java_name(descriptor: Any) -> str:
    return str(descriptor.full_name).removeprefix("eos.pulsar.wire.").replace(".", "$")


def messages(descriptors: list[Descriptor]) -> Iterator[Descriptor]:
    for descriptor in descriptors:
        yield descriptor
        yield from messages(list(descriptor.nested_types))


def test_every_field_has_the_brokers_number_and_wire_type() -> None:
    ours = list(messages(list(pulsar_pb2.DESCRIPTOR.message_types_by_name.values())))
    for descriptor, theirs in zip(ours, ask("tags", map(java_name, ours)), strict=True):
        tags = {field.name: field.number << 3 | 2 * (field.type in TEXTUAL) for field in descriptor.fields}
        assert tags.items() <= theirs.items(), descriptor.name


def test_every_enum_value_is_the_brokers() -> None:
    ours = [*pulsar_pb2.DESCRIPTOR.enum_types_by_name.values()]
    ours += [
        kind for d in messages(list(pulsar_pb2.DESCRIPTOR.message_types_by_name.values())) for kind in d.enum_types
    ]
    for kind, theirs in zip(ours, ask("values", map(java_name, ours)), strict=True):
        values = {value.name: value.number for value in kind.values if value.name != "UNSET"}
        assert values.items() <= theirs.items(), kind.name


def test_the_brokers_classes_read_each_frame_as_the_vectors_say() -> None:
    fresh = {vector["name"]: vector["read"] for vector in frame_vectors()}
    assert fresh == {vector["name"]: vector["read"] for vector in vectors("frames")}


def test_the_java_clients_hashes_are_those_of_the_vectors() -> None:
    assert hash_vectors() == vectors("key_hashes")


def test_the_java_clients_schemas_write_what_the_vectors_say() -> None:
    assert schema_vectors() == vectors("schema_values")


@pytest.mark.parametrize("partitions", BOOST_PARTITIONS)
def test_the_python_client_routes_as_the_vectors_and_we_do(pulsar: RunningPulsar, partitions: int) -> None:
    routed = boost_partitions(pulsar.service_url, pulsar.admin_url, partitions)
    assert routed == vectors("boost_partitions")[str(partitions)]
    assert partition_of(pa.array(list(routed)), partitions, "boost").tolist() == list(routed.values())


def send(ours: Client, topic: str, batch: pa.RecordBatch, compression: CompressionOption = "none") -> None:
    with ours.producer(topic) as producer:
        for chunk in BatchEncoder(compression, producer.max_message_size).chunks(batch):
            producer.send(chunk, None)
        producer.flush()


def received(theirs: official.Client, topic: str) -> Iterator[official.Message]:
    reader = theirs.create_reader(topic, official.MessageId.earliest)
    while reader.has_message_available():
        yield reader.read_next(60_000)
    reader.close()


@pytest.mark.parametrize("compression", COMPRESSION_OPTIONS)
def test_the_official_client_reads_our_batches(
    ours: Client, theirs: official.Client, make_topic: MakeTopic, compression: CompressionOption
) -> None:
    topic = make_topic(f"wire-{compression}")
    batch = rows("value", "key", "ordering_key", "event_time", "properties")
    send(ours, topic, batch, compression)
    seen = [
        {
            "value": None if message.has_null_value() else message.data(),
            "key": message.partition_key(),
            "ordering_key": message.ordering_key(),
            "event_time": message.event_timestamp(),
            "properties": message.properties(),
        }
        for message in received(theirs, topic)
    ]
    # This client has no null but that of a value: what else a message lacks is empty, or 0. Base64 stays as it is.
    assert seen == [
        {
            "value": row["value"],
            "key": _text(row["key"] or b""),
            "ordering_key": (row["ordering_key"] or b"").decode(),
            "event_time": row["event_time"] or 0,
            "properties": dict(row["properties"] or []),
        }
        for row in batch.to_pylist()
    ]


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return base64.b64encode(key).decode()


def test_the_official_client_reads_many_messages_in_order(
    ours: Client, theirs: official.Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("wire-many")
    values = [str(number).encode() * (number % 40) for number in range(30_000)]
    send(ours, topic, pa.RecordBatch.from_pydict({"value": values, "key": [f"k{n % 97}" for n in range(30_000)]}))
    seen = [(message.data(), message.partition_key()) for message in received(theirs, topic)]
    assert seen == [(value, f"k{number % 97}") for number, value in enumerate(values)]


def test_the_broker_takes_the_largest_message_that_we_allow(
    ours: Client, theirs: official.Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("wire-large")
    with ours.producer(topic) as producer:
        encoder = BatchEncoder(max_message_size=producer.max_message_size)
        header = 4 + 1 + 4  # size, tag, and a varint of four bytes
        value = b"v" * (encoder.limit - header)
        (chunk,) = encoder.chunks(pa.RecordBatch.from_pydict({"value": [value]}))
        assert chunk.uncompressed_size == encoder.limit
        producer.send(chunk, None)
        producer.flush()
    assert [message.data() for message in received(theirs, topic)] == [value]
