"""Frames against vectors that the broker's own classes have read, cut in every way."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from eos.errors import DamagedFrame
from eos.pulsar.wire.checksum import crc32c
from eos.pulsar.wire.frames import FrameDecoder, encode, encode_message, error_name
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    BrokerEntryMetadata,
    CommandMessage,
    CommandPing,
    CommandSend,
    MessageIdData,
    MessageMetadata,
)
from tests.vectors.frames import describe_frame, frames

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "frames.json").read_text(encoding="utf-8"))
BY_NAME = pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])

PING = encode(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))
SEND = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=2))
METADATA = MessageMetadata(producer_name="p", sequence_id=2, publish_time=3)
MESSAGE = b"".join(encode_message(SEND, METADATA, [b"pay", memoryview(b"load")]))


def test_vectors_hold_every_kind_of_frame() -> None:
    assert [vector["name"] for vector in VECTORS] == list(frames())


@pytest.mark.parametrize(
    "name", [name for name in frames() if name.split(", ")[-1] not in ("lz4", "zlib", "zstd", "snappy")]
)
def test_frames_are_those_that_the_broker_has_read(name: str) -> None:
    # What a compressor makes of the same bytes may change with its version; those are only read.
    (vector,) = (vector for vector in VECTORS if vector["name"] == name)
    assert frames()[name].hex() == vector["frame"]


@BY_NAME
def test_a_frame_fed_whole_is_read_as_the_broker_reads_it(vector: dict[str, Any]) -> None:
    (frame,) = FrameDecoder().feed(bytes.fromhex(vector["frame"]))
    assert describe_frame(frame) == vector["read"]


@BY_NAME
def test_a_frame_fed_byte_by_byte_comes_out_with_its_last_byte(vector: dict[str, Any]) -> None:
    raw = bytes.fromhex(vector["frame"])
    decoder = FrameDecoder()
    for at in range(len(raw) - 1):
        assert decoder.feed(raw[at : at + 1]) == []
    (frame,) = decoder.feed(raw[-1:])
    assert describe_frame(frame) == vector["read"]


@BY_NAME
def test_a_frame_cut_at_each_position_stays_the_same(vector: dict[str, Any]) -> None:
    raw = bytes.fromhex(vector["frame"])
    (expected,) = FrameDecoder().feed(raw)
    for cut in range(len(raw) + 1):
        decoder = FrameDecoder()
        assert decoder.feed(raw[:cut]) + decoder.feed(raw[cut:]) == [expected]


def test_several_frames_and_the_start_of_another_in_one_feed() -> None:
    decoder = FrameDecoder()
    first = decoder.feed(memoryview(PING + MESSAGE + PING[:5]))
    assert [frame.command.type for frame in first] == [BaseCommand.PING, BaseCommand.SEND]
    assert [entry.packed for entry in first[1].entries] == [b"payload"]
    assert [frame.command.type for frame in decoder.feed(PING[5:])] == [BaseCommand.PING]


def test_broker_entry_metadata_is_skipped() -> None:
    (command_size,) = struct.unpack_from(">I", MESSAGE, 4)
    rest = 8 + command_size
    entry = BrokerEntryMetadata(broker_timestamp=1, index=9).SerializeToString()
    inner = MESSAGE[4:rest] + struct.pack(">HI", 0x0E02, len(entry)) + entry + MESSAGE[rest:]
    (frame,) = FrameDecoder().feed(struct.pack(">I", len(inner)) + inner)
    assert [(entry.metadata, entry.packed) for entry in frame.entries] == [(METADATA, b"payload")]


def test_a_message_without_a_checksum_is_read() -> None:
    (frame,) = FrameDecoder().feed(without_checksum(MESSAGE))
    assert [(entry.metadata, entry.packed) for entry in frame.entries] == [(METADATA, b"payload")]


def without_checksum(message: bytes) -> bytes:
    (command_size,) = struct.unpack_from(">I", message, 4)
    rest = 8 + command_size
    inner = message[4:rest] + message[rest + 6 :]
    return struct.pack(">I", len(inner)) + inner


def test_a_changed_byte_of_metadata_or_payload_is_noticed() -> None:
    (command_size,) = struct.unpack_from(">I", MESSAGE, 4)
    for at in range(8 + command_size + 2, len(MESSAGE)):
        damaged = bytearray(MESSAGE)
        damaged[at] ^= 1
        with pytest.raises(DamagedFrame):
            FrameDecoder().feed(damaged)


def test_a_message_whose_magic_number_is_changed_is_none_without_a_checksum() -> None:
    (command_size,) = struct.unpack_from(">I", MESSAGE, 4)
    for bit in range(16):
        damaged = bytearray(MESSAGE)
        damaged[8 + command_size + bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedFrame):
            FrameDecoder().feed(damaged)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("name", ["producer_name", "sequence_id", "publish_time"])
def test_the_damage_of_a_received_message_is_told_with_the_message(name: str, checksum: bool) -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1)
    metadata.ClearField(name)
    sent = message(metadata, entry=4)
    (frame,) = FrameDecoder().feed(sent if checksum else without_checksum(sent))
    (found,) = frame.entries
    assert (found.damage, found.metadata, found.packed) == (f"its metadata has no {name}", MessageMetadata(), b"")
    assert found.id == EntryId(3, 4)


def message(metadata: MessageMetadata, entry: int, consumer: int = 1) -> bytes:
    where = MessageIdData(ledger_id=3, entry_id=entry)
    command = BaseCommand(type=BaseCommand.MESSAGE, message=CommandMessage(consumer_id=consumer, message_id=where))
    return b"".join(bytes(part) for part in encode_message(command, metadata, [b"payload"]))


def test_messages_in_a_row_for_one_consumer_are_one_frame() -> None:
    sent = [(0, 1), (1, 1), (2, 2), (3, 1), (4, 1)]
    raw = [message(METADATA, entry, consumer) for entry, consumer in sent]
    frames = FrameDecoder().feed(b"".join((*raw[:4], PING, *raw[4:])))
    assert [(frame.command.message.consumer_id, [one.id.entry for one in frame.entries]) for frame in frames] == [
        (1, [0, 1]),
        (2, [2]),
        (1, [3]),
        (0, []),
        (1, [4]),
    ]


def test_a_message_command_without_a_message_says_that_it_is_damaged() -> None:
    where = MessageIdData(ledger_id=3, entry_id=4)
    command = BaseCommand(type=BaseCommand.MESSAGE, message=CommandMessage(consumer_id=1, message_id=where))
    (frame,) = FrameDecoder().feed(encode(command))
    (found,) = frame.entries
    assert (found.id, found.damage) == (EntryId(3, 4), "it came without a message")


@pytest.mark.parametrize(
    "inner",
    [
        b"",
        b"\0\0",
        struct.pack(">I", 100) + b"\x08\x12",
        struct.pack(">I", 2) + b"\xff\xff",
        MESSAGE[4:-7][:60] + b"\x0e",
    ],
    ids=["nothing", "half a size", "a command beyond the end", "no command", "half a magic number"],
)
def test_what_is_no_frame_is_refused(inner: bytes) -> None:
    with pytest.raises(DamagedFrame):
        FrameDecoder().feed(struct.pack(">I", len(inner)) + inner)


def test_a_frame_beyond_the_limit_is_refused_by_its_first_bytes() -> None:
    decoder = FrameDecoder(max_frame_size=1000)
    assert decoder.feed(struct.pack(">I", 1000)) == []
    with pytest.raises(DamagedFrame, match=r"1001 bytes. The limit is 1000"):
        FrameDecoder(max_frame_size=1000).feed(struct.pack(">I", 1001))


@pytest.mark.parametrize("damage", [MESSAGE[:-1] + b"?", b"\x7f\xff\xff\xff"])
def test_frames_before_a_damaged_one_are_not_lost_with_it(damage: bytes) -> None:
    decoder = FrameDecoder()
    assert len(decoder.feed(PING + MESSAGE + damage)) == 2
    with pytest.raises(DamagedFrame):
        decoder.feed(b"")


def test_a_command_of_a_newer_broker_is_no_error() -> None:
    body = b"\x08\xc8\x01" + b"\xc2\x0c\x01x"  # type 200, and field 200 with one byte
    (frame,) = FrameDecoder().feed(struct.pack(">II", len(body) + 4, len(body)) + body)
    assert frame.command.type == 200


def test_errors_have_names_or_numbers() -> None:
    assert error_name(24) == "TransactionNotFound"
    assert error_name(99) == "ServerError 99"


def test_the_checksum_is_castagnolis_over_all_parts() -> None:
    assert crc32c([b"123456789"]) == 0xE3069283  # the check value of CRC-32C
    assert crc32c([b"12", memoryview(b"345"), bytearray(b"6789"), b""]) == 0xE3069283
