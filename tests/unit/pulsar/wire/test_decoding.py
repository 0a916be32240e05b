"""What entries hold becomes columns; what they must not hold becomes an error that names the entry."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire import decoding
from eos.pulsar.wire.decoding import COLUMNS, decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.headers import find
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import EncryptionKeys, KeyValue, MessageMetadata, SingleMessageMetadata
from tests.one_by_one import rows_one_by_one

ALL = list(COLUMNS)
NEWER = b"\x5a\x03abc"  # field 11, which we don't know


def message(value: bytes, unknown: bytes = b"", **own: Any) -> bytes:
    described = SingleMessageMetadata(payload_size=len(value), **own).SerializeToString() + unknown
    return struct.pack(">I", len(described)) + described + value


def batch(messages: Sequence[bytes], place: int = 0, count: int | None = None, **metadata: Any) -> Entry:
    described = MessageMetadata(num_messages_in_batch=len(messages) if count is None else count, **metadata)
    payload = b"".join(messages)
    return Entry(EntryId(3, place), described, payload, len(payload), "t")


def alone(value: bytes, place: int = 0, **metadata: Any) -> Entry:
    return Entry(EntryId(3, place), MessageMetadata(**metadata), value, len(value), "t")


def values(*entries: Entry) -> list[bytes | None]:
    column: list[bytes | None] = decode(entries, ["value"]).column("value").to_pylist()
    return column


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each group of entries: whether all headers were found at once."""
    outcomes: list[bool] = []

    def watched(*args: Any) -> Any:
        headers = find(*args)
        outcomes.append(headers is not None)
        return headers

    monkeypatch.setattr("eos.pulsar.wire.rows.find", watched)
    return outcomes


def test_the_types_are_the_same_whatever_the_entries_hold() -> None:
    full = batch(
        [
            message(
                b"v",
                partition_key=b"k",
                ordering_key=b"o",
                event_time=5,
                sequence_id=9,
                properties=[KeyValue(key="a", value="b")],
            )
        ],
        producer_name="p",
        publish_time=7,
        schema_version=b"\1",
    )
    for entries in ([full], [full, alone(b"v", 1)], [batch([message(b"")])], [batch([])], []):
        decoded = decode(entries, ALL)
        assert decoded.schema == pa.schema(list(COLUMNS.items()))
        decoded.validate(full=True)
        assert decoded.num_rows == sum(entry.num_messages for entry in entries)


def test_no_columns_are_still_so_many_rows() -> None:
    decoded = decode([batch([message(b"a"), message(b"b")]), alone(b"c", 1)], [])
    assert (decoded.num_rows, decoded.num_columns) == (3, 0)


def test_messages_that_compaction_took_out_leave_a_gap_in_the_batch_indexes() -> None:
    entry = batch([message(b"a"), message(b"", compacted_out=True), message(b"c")])
    ids = decode([entry], ["message_id"]).column("message_id").to_pylist()
    assert [one["batch_index"] for one in ids] == [0, 2]
    assert values(entry) == [b"a", b"c"]


def test_a_damaged_property_counts_only_in_a_message_that_compaction_left() -> None:
    damaged = b"\x0a\x06\x0a\x01a\x12\x81\x00"  # a property's value of 129 bytes, of which none are there
    left_out = batch([message(b"gone", damaged, compacted_out=True), message(b"b")])
    assert decode([left_out], ALL).num_rows == 1
    assert [row["value"] for row in rows_one_by_one([left_out])] == [b"b"]
    kept = batch([message(b"a", damaged), message(b"b")])
    with pytest.raises(DamagedFrame):
        decode([kept], ALL)
    with pytest.raises(DecodeError):
        rows_one_by_one([kept])


def test_null_values_and_null_keys_are_null_and_empty_ones_empty() -> None:
    entry = batch([message(b"", null_value=True), message(b""), message(b"", partition_key=b"")])
    null_key = batch([message(b"v", partition_key=b"k", null_partition_key=True)], 1)
    entries = [
        entry,
        null_key,
        alone(b"", 2, null_value=True),
        alone(b"", 3, partition_key=b"k", null_partition_key=True),
    ]
    decoded = decode(entries, ["value", "key"])
    assert decoded.column("value").to_pylist() == [None, b"", b"", b"v", None, b""]
    assert decoded.column("key").to_pylist() == [None, None, b"", None, None, None]


def test_sequence_ids_are_the_messages_own_or_counted_from_the_entry() -> None:
    entries = [
        batch([message(b"a"), message(b"b", sequence_id=40), message(b"c")], sequence_id=10),
        alone(b"d", 1, sequence_id=20),
    ]
    assert decode(entries, ["sequence_id"]).column("sequence_id").to_pylist() == [10, 40, 12, 20]


def test_of_two_properties_of_one_name_the_last_counts() -> None:
    pairs = [KeyValue(key="a", value="1"), KeyValue(key="b", value="2"), KeyValue(key="a", value="3")]
    entry = batch([message(b"v", properties=pairs), message(b"w", properties=pairs[:1])])
    assert decode([entry], ["properties"]).column("properties").to_pylist() == [[("b", "2"), ("a", "3")], [("a", "1")]]


def test_a_property_that_is_no_utf8_is_replaced_where_it_is_not() -> None:
    pair = b"\x0a\x02a\xff" + b"\x12\x01b"
    described = b"\x0a" + bytes([len(pair)]) + pair + b"\x18\x01"
    entry = batch([struct.pack(">I", len(described)) + described + b"v"])
    assert decode([entry], ["properties"]).column("properties").to_pylist() == [[("a�", "b")]]


def test_large_numbers_are_signed() -> None:
    entry = batch([message(b"", event_time=2**64 - 1), message(b"", event_time=2**63 - 1)])
    assert decode([entry], ["event_time"]).column("event_time").to_pylist() == [-1, 2**63 - 1]


# ---- headers found at once, or read one by one


@pytest.mark.parametrize(
    "inner",
    [
        message(b"inner", partition_key=b"k"),
        message(b"inner") + b"and more",
        b"before" + message(b"inner"),
        message(b"one") + message(b"two"),  # the second begins where the first ends, as if it were of the batch
        message(b"one") + message(b"two") + b"and more",
        message(message(b"in one") + message(b"another")),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_header_inside_a_value_is_not_taken_for_one(inner: bytes, place: int, found: list[bool]) -> None:
    expected = [b"a", b"b", b"c"]
    expected[place] = inner
    assert values(batch([message(value) for value in expected])) == expected
    assert found == [True]


def test_a_header_inside_a_value_does_not_stand_in_for_one_that_is_not_recognised(found: list[bool]) -> None:
    inner = message(b"inner")
    entry = batch([message(inner), message(b"b", NEWER)])
    assert values(entry) == [inner, b"b"]
    assert found == [False]


def test_values_full_of_headers_are_read_one_by_one(found: list[bool]) -> None:
    value = message(b"") * 30
    assert values(batch([message(value), message(value)])) == [value, value]
    assert found == [False]


def test_a_metadata_too_large_to_be_recognised_is_read_one_by_one(found: list[bool]) -> None:
    entry = batch([message(b"a", partition_key=b"k" * 70_000), message(b"b")])
    assert decode([entry], ["key"]).column("key").to_pylist() == [b"k" * 70_000, None]
    assert found == [False]


def test_a_property_with_a_field_of_a_newer_client_is_read_one_by_one(found: list[bool]) -> None:
    pair = b"\x0a\x01a\x12\x01b" + NEWER
    described = b"\x0a" + bytes([len(pair)]) + pair + b"\x18\x01"
    entry = batch([struct.pack(">I", len(described)) + described + b"v"])
    assert decode([entry], ["properties"]).column("properties").to_pylist() == [[("a", "b")]]
    assert found == [True]


def test_many_entries_are_decoded_in_groups(found: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "GROUP_BYTES", 500_000)
    entries = [batch([message(b"%d" % place + b"x" * 100_000)] * 2, place) for place in range(7)]
    decoded = decode(entries, ALL)
    assert found == [True] * 4
    assert [row | {"properties": []} for row in decoded.to_pylist()] == rows_one_by_one(entries)


# ---- damage


def test_entries_whose_counts_are_wrong_but_add_up_are_damaged() -> None:
    short, long = batch([message(b"a")], 0, count=2), batch([message(b"b"), message(b"c")], 1, count=1)
    with pytest.raises(DamagedFrame, match="entry 3:0 of t can't be read: it says that it has 2 messages"):
        values(short, long)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (batch([message(b"abc")[:-1]], 4), "message 0 of its batch has no end"),
        (batch([message(b"a long value"), message(b"b")[:3]], 4), "message 1 of its batch is not valid"),
        (batch([message(b"a") + b"x"], 4), "1 bytes are left behind the last message"),
        (batch([struct.pack(">I", 3) + b"\x12\x01k"], 4), "message 0 of its batch has no end"),
        (batch([struct.pack(">I", 2) + b"\x18\x85"], 4), "message 0 of its batch is not valid"),
        (
            batch([struct.pack(">I", 11) + b"\x18" + b"\xff" * 9 + b"\x01"], 4),
            "no end",
        ),
        (batch([], 4, count=-2), "it says that it has -2 messages"),
        (
            batch([message(b"a")], 4, count=2**31 - 1),
            "it says that it has 2,147,483,647 messages",
        ),
        (
            alone(b"", 4, compression=3, uncompressed_size=2**32 - 1),
            "a message of 4,294,967,295 bytes once decompressed",
        ),
        (batch([message(b"a", partition_key=b"a=bc", partition_key_b64_encoded=True)], 4), "the key of message 0"),
        (alone(b"abc", 4, compression=1, uncompressed_size=3), "not a valid lz4"),
    ],
)
def test_a_damaged_entry_is_named(entry: Entry, why: str) -> None:
    with pytest.raises(DamagedFrame, match="entry 3:4 of t can't be read") as caught:
        decode([alone(b"fine"), entry], ALL)
    assert why in str(caught.value)


def test_an_encrypted_entry_is_refused_by_name() -> None:
    entry = batch([message(b"a")], encryption_keys=[EncryptionKeys(key="mine")])
    with pytest.raises(InvalidInput, match="entry 3:0 of t is encrypted for the key 'mine', and no private key was"):
        values(entry)


def test_a_single_chunk_is_refused() -> None:
    with pytest.raises(InvalidInput, match="entry 3:0 of t is one chunk of a message"):
        values(alone(b"a", num_chunks_from_msg=2, uuid="u"))
