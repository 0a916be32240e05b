"""Messages without a batch: whichever fields they have, their columns are what protobuf reads."""

from __future__ import annotations

import base64
from itertools import product

import pytest

from eos.config import COMPRESSIONS, Compression
from eos.pulsar.wire.compression import TYPES, compress
from eos.pulsar.wire.decoding import COLUMNS, Column, decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import KeyValue, MessageMetadata
from tests.one_by_one import rows_one_by_one

ALL: list[Column] = list(COLUMNS)
PAIRS = [
    [],
    [KeyValue(key="a", value="b")],
    [KeyValue(key="a", value=""), KeyValue(value="x" * 200), KeyValue(key="a", value="c")],
]
NEWER = KeyValue.FromString(b"\x0a\x01a\x12\x01b\x1a\x01c")  # with a field of a newer client


def alone(place: int, metadata: MessageMetadata, value: bytes) -> Entry:
    metadata.MergeFrom(MessageMetadata(producer_name="p", sequence_id=place, publish_time=5))
    return Entry(EntryId(3, place), metadata, value, len(value), "t")


def every_kind() -> list[Entry]:
    """Return a message for each choice of fields that are there."""
    entries = []
    choices = product((None, b"", b"key"), (False, True), (False, True), (None, b"o"), (None, 2**64 - 1), PAIRS)
    for place, (key, encoded, no_key, ordering, time, pairs) in enumerate(choices):
        metadata = MessageMetadata(partition_key_b64_encoded=encoded, null_partition_key=no_key, properties=pairs)
        if key is not None:
            metadata.partition_key = base64.b64encode(key) if encoded else key
        if ordering is not None:
            metadata.ordering_key = ordering
        if time is not None:
            metadata.event_time = time
        if place % 5 == 0:
            metadata.null_value = place % 2 == 0
        entries.append(alone(place, metadata, b"" if place % 7 == 0 else b"value %d" % place))
    return entries


def rows(entries: list[Entry], wanted: list[Column]) -> list[dict[str, object]]:
    found = decode(entries, wanted)
    found.validate(full=True)
    columns: list[dict[str, object]] = found.to_pylist()
    for row in columns:
        if "properties" in row:
            row["properties"] = sorted(row["properties"])  # type: ignore[call-overload]
    return columns


@pytest.mark.parametrize("wanted", [ALL, *[[column] for column in ALL], ["value", "key"]], ids=str)
def test_each_column_is_what_protobuf_reads(wanted: list[Column], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.pulsar.wire.rows._one_by_one", lambda *_: pytest.fail("they were written anew"))
    entries = every_kind()
    expected = rows_one_by_one(entries)
    for row in expected:
        if row["event_time"] is not None:
            row["event_time"] = -1  # 2**64 - 1 as a signed number
    assert rows(entries, wanted) == [{name: row[name] for name in ALL if name in wanted} for row in expected]
    assert rows(entries[:1], wanted) == rows(entries, wanted)[:1]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_values_are_decompressed(compression: Compression) -> None:
    value = b"value" * 40
    metadata = MessageMetadata(partition_key=b"k")
    if compression != "none":
        metadata.compression, metadata.uncompressed_size = TYPES[compression], len(value)
    entry = alone(0, metadata, bytes(compress(value, compression)) if compression != "none" else value)
    assert rows([entry, entry], ["value", "key"]) == [{"value": value, "key": b"k"}] * 2


def test_a_property_with_a_field_of_a_newer_client_is_read() -> None:
    entries = [alone(0, MessageMetadata(properties=[NEWER]), b"v"), alone(1, MessageMetadata(), b"w")]
    assert rows(entries, ["properties"]) == [{"properties": [("a", "b")]}, {"properties": []}]
