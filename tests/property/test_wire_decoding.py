"""For any entries their columns are the same as reading them message by message, or a clear error."""

from __future__ import annotations

import base64
import re
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from eos.config import COMPRESSIONS, Compression
from eos.errors import DamagedEntry, DamagedFrame
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.compression import TYPES, compress
from eos.pulsar.wire.decoding import COLUMNS, Column, decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import FrameDecoder
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import (
    MessageMetadata,
    SingleMessageMetadata,
)
from tests.one_by_one import rows_one_by_one
from tests.property.test_wire_batch import as_sent, batches
from tests.wire import received, stored

NUMBERS = st.sampled_from([0, 1, 127, 128, 16_384, 1_700_000_000_000, 2**49, 2**56, 2**63 - 1])
SMALL = st.binary(max_size=12) | st.sampled_from([b"k" * 127, b"k" * 128, b"\0" * 40])
TEXT = st.text(max_size=6) | st.sampled_from(["y" * 127, "y" * 20_000])


@st.composite
def own_metadata(draw: st.DrawFn) -> SingleMessageMetadata:
    own = SingleMessageMetadata()
    for name, strategy in {
        "partition_key": SMALL,
        "ordering_key": SMALL,
        "event_time": NUMBERS,
        "sequence_id": NUMBERS,
        "compacted_out": st.booleans(),
        "null_value": st.booleans(),
        "null_partition_key": st.booleans(),
    }.items():
        if draw(st.booleans()):
            setattr(own, name, draw(strategy))
    if own.HasField("partition_key") and draw(st.booleans()):
        own.partition_key = base64.b64encode(own.partition_key)
        own.partition_key_b64_encoded = True
    for key, value in draw(st.lists(st.tuples(TEXT, TEXT), max_size=3)):
        own.properties.add(key=key, value=value)
    return own


def framed(own: SingleMessageMetadata, value: bytes, unknown: bytes = b"") -> bytes:
    own.payload_size = len(value)
    described = own.SerializeToString() + unknown
    return struct.pack(">I", len(described)) + described + value


LOOKALIKE = framed(SingleMessageMetadata(partition_key=b"k"), b"v")
FRAGMENTS = [
    b"\0",
    b"\0\0\0\x02\x18\x00",
    b"\0\0\0\x02\x18\x01",
    LOOKALIKE,
    LOOKALIKE[:5],
    b"\0\0\0\x03\x18\x80\x01",
    b"x" * 90,
]
VALUES = st.binary(max_size=20) | st.lists(st.sampled_from(FRAGMENTS), max_size=8).map(b"".join)
UNKNOWN = st.sampled_from([b""] * 9 + [b"\x5a\x03abc"])  # field 11 of a newer client


@st.composite
def mixed_entries(draw: st.DrawFn) -> list[Entry]:
    entries = []
    kinds = draw(st.sampled_from([st.booleans(), st.just(value=True), st.just(value=False)]))
    for place in range(draw(st.integers(0, 4))):
        metadata = MessageMetadata(producer_name=draw(TEXT), sequence_id=draw(st.integers(0, 99)), publish_time=place)
        if draw(st.booleans()):
            metadata.schema_version = draw(SMALL)
        if draw(kinds):
            messages = draw(st.lists(st.tuples(own_metadata(), VALUES, UNKNOWN), max_size=5))
            payload = b"".join(framed(own, value, unknown) for own, value, unknown in messages)
            metadata.num_messages_in_batch = len(messages)
        else:
            own = draw(own_metadata())
            payload = draw(VALUES)
            for name in ("partition_key", "partition_key_b64_encoded", "ordering_key", "event_time", "null_value"):
                if own.HasField(name):
                    setattr(metadata, name, getattr(own, name))
            metadata.null_partition_key = own.null_partition_key
            metadata.properties.extend(own.properties)
        compression = draw(st.sampled_from(COMPRESSIONS))
        if compression != "none" and payload:
            metadata.compression, metadata.uncompressed_size = TYPES[compression], len(payload)
            payload = bytes(compress(payload, compression))
        entries.append(Entry(EntryId(3, place), metadata, payload, len(payload), "t"))
    return entries


_IN_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
"""RFC 4648, 4. Python's own decoder takes more, and each version of it something else."""


@st.composite
def in_base64_or_almost(draw: st.DrawFn) -> bytes:
    """Base64, with padding or another byte put in, or taken out, anywhere."""
    text = base64.b64encode(draw(st.binary(max_size=5)))
    at = draw(st.integers(0, len(text)) | st.just(len(text)))
    return draw(st.sampled_from([text, text[:at], text[:at] + draw(st.sampled_from(BESIDE)) + text[at:]]))


BESIDE = [b"=", b"==", b"===", b"A", b"AA", b"AA==", b"-", b"_", b"\n", b" "]


@given(st.lists(st.tuples(st.booleans(), in_base64_or_almost()), min_size=1, max_size=5))
def test_a_key_is_decoded_or_its_entry_is_damaged(texts: list[tuple[bool, bytes]]) -> None:
    entries = []
    for place, (in_base64, text) in enumerate(texts):
        metadata = MessageMetadata(producer_name="p", sequence_id=place, publish_time=1)
        metadata.partition_key, metadata.partition_key_b64_encoded = text, in_base64
        entries.append(Entry(EntryId(3, place), metadata, b"v", 1, "t"))
    wrong = [place for place, (in_base64, text) in enumerate(texts) if in_base64 and not _IN_BASE64.fullmatch(text)]
    event("damaged" if wrong else "decoded")
    if not wrong:
        keys = [base64.b64decode(text) if in_base64 else text for in_base64, text in texts]
        assert decode(entries, ["key"]).to_pydict() == {"key": keys}
        return
    with pytest.raises(DamagedEntry, match="marked as base64, and is not") as damaged:
        decode(entries, ["key"])
    assert damaged.value.entry == wrong[0]


def as_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    batch.validate(full=True)
    columns: list[dict[str, Any]] = batch.to_pylist()
    for row in columns:
        if "properties" in row:
            row["properties"] = sorted(row["properties"])
    return columns


def one_by_one(entries: list[Entry], wanted: list[Column]) -> pa.RecordBatch:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("eos.pulsar.wire.rows.find", lambda *_: None)
        return decode(entries, wanted)


@given(mixed_entries(), st.lists(st.sampled_from(list(COLUMNS)), unique=True))
def test_columns_are_what_reading_one_by_one_gives(entries: list[Entry], wanted: list[Column]) -> None:
    expected = rows_one_by_one(entries)
    decoded = decode(entries, wanted)
    assert decoded.num_rows == len(expected)
    assert decoded.schema.names == [name for name in COLUMNS if name in wanted]
    assert as_rows(decoded) == [{name: row[name] for name in COLUMNS if name in wanted} for row in expected]
    assert one_by_one(entries, wanted).equals(decoded)


@given(batches(), st.sampled_from(COMPRESSIONS), st.integers(1, 50_000))
def test_what_the_encoder_makes_is_decoded(batch: pa.RecordBatch, compression: Compression, target_bytes: int) -> None:
    entries = []
    for place, chunk in enumerate(BatchEncoder(compression, target_bytes=target_bytes).chunks(batch)):
        entries.append(stored(chunk, place))
    sent: list[Column] = ["value", "key", "ordering_key", "event_time", "properties"]
    seen = as_rows(decode(entries, sent))
    expected = [as_sent(row) for row in batch.to_pylist()]
    for row in expected:
        row["properties"] = sorted(row["properties"])
    assert seen == expected


ALL: list[Column] = list(COLUMNS)


@given(mixed_entries().filter(bool), st.data())
def test_a_damaged_frame_is_an_error_and_never_other_rows(entries: list[Entry], data: st.DataObject) -> None:
    entry = entries[0]
    frame = bytearray(received(entry))
    covered = struct.unpack_from(">I", frame, 4)[0] + 8  # after the command, which no checksum covers
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(covered, len(frame) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        seen = decode([one for found in FrameDecoder().feed(frame) for one in found.entries], ALL)
    except DamagedFrame:
        event("refused")
        return
    assert as_rows(seen) == rows_one_by_one([entry])


@given(mixed_entries().filter(bool), st.data())
def test_a_cut_or_garbled_entry_is_an_error_or_what_reading_one_by_one_gives(
    entries: list[Entry], data: st.DataObject
) -> None:
    """Without the frame's checksum: the decoder alone must stay upright."""
    entry = entries[-1]
    payload = bytearray(bytes(entry.payload))
    for _ in range(data.draw(st.integers(0, 3)) if payload else 0):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    payload = payload[: data.draw(st.integers(0, len(payload)))] + data.draw(st.binary(max_size=3))
    metadata = MessageMetadata.FromString(entry.metadata.SerializeToString())
    metadata.ClearField("compression")
    garbled = Entry(entry.id, metadata, bytes(payload), len(payload), "t")
    try:
        seen = decode([*entries[:-1], garbled], ALL)
    except DamagedFrame:
        event("refused")
        with pytest.raises(DamagedFrame, match=r"entry 3:\d of t can't be read: "):
            one_by_one([garbled], ALL)
        return
    assert seen.equals(one_by_one([*entries[:-1], garbled], ALL))
    if seen.num_rows:
        assert seen.column("value").to_pylist() == [row["value"] for row in rows_one_by_one([*entries[:-1], garbled])]
