"""Frames that are read together are read as each one alone, whichever of their bits differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from eos.errors import DamagedFrame
from eos.pulsar.wire import frames
from eos.pulsar.wire.checksum import crc32c
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frame_template import _MANY, FrameTemplate
from eos.pulsar.wire.frames import Frame, FrameDecoder, encode
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandPing,
    CompressionType,
    KeyValue,
    MessageIdData,
    MessageMetadata,
)

SOME = 20  # frames, of which one form is looked for
PAYLOAD = b"\0\0\0\2\x18\0" * 20
LARGE = 2**63 - 1
BATCH = MessageMetadata(
    producer_name="p-1", sequence_id=300, publish_time=1_764_400_000_000, num_messages_in_batch=10,
    highest_sequence_id=309,
)  # fmt: skip
FULL = MessageMetadata(
    producer_name="p-1", sequence_id=LARGE, publish_time=1, partition_key=b"key", ordering_key=b"o",
    compression=CompressionType.ZLIB, uncompressed_size=2**32 - 1, num_messages_in_batch=2**28 - 1, event_time=5,
    schema_version=b"\0\1", txnid_least_bits=7, txnid_most_bits=2**64 - 1, highest_sequence_id=8,
)  # fmt: skip
ALONE = MessageMetadata(producer_name="p", sequence_id=1, publish_time=2, partition_key=b"k")
ALONE.properties.add(key="name", value="x")
ALONE.properties.add(key="name", value="")
CHUNK = MessageMetadata(
    producer_name="p", sequence_id=1, publish_time=2, uuid="u", chunk_id=1, num_chunks_from_msg=3,
    total_chunk_msg_size=9,
)  # fmt: skip
UNCOUNTED = MessageMetadata(producer_name="p", sequence_id=1, publish_time=2, num_messages_in_batch=-1)
COMPRESSED = MessageMetadata(
    producer_name="p", sequence_id=1, publish_time=2, num_messages_in_batch=3, compression=CompressionType.LZ4
)
NO_PLACE = MessageMetadata(producer_name="xyz", sequence_id=8, publish_time=8, schema_version=b"\xff" * 8)
"""Read six bytes too late, it ends within a number."""

METADATA = {
    "no place": NO_PLACE,
    "batch": BATCH,
    "compressed": COMPRESSED,
    "every field": FULL,
    "no batch": ALONE,
    "chunk": CHUNK,
    "negative": UNCOUNTED,
}


@dataclass(frozen=True)
class Sent:
    """A frame in its parts, so that each may be other than an honest broker would write it."""

    command: bytes
    metadata: bytes
    payload: bytes = PAYLOAD
    metadata_size: int | None = None  # None: the right one
    checksum: bytes | None = None  # the same, with its magic number

    def frame(self) -> bytes:
        size = len(self.metadata) if self.metadata_size is None else self.metadata_size
        body = size.to_bytes(4, "big") + self.metadata + self.payload
        checksum = b"\x0e\x01" + crc32c([body]).to_bytes(4, "big") if self.checksum is None else self.checksum
        inner = len(self.command).to_bytes(4, "big") + self.command + checksum + body
        return len(inner).to_bytes(4, "big") + inner


def message(metadata: MessageMetadata, entry: int = 1000, consumer: int = 1, ledger: int = 70) -> Sent:
    where = MessageIdData(ledger_id=ledger, entry_id=entry, partition=-1)
    command = BaseCommand(type=BaseCommand.MESSAGE, message=CommandMessage(consumer_id=consumer, message_id=where))
    return Sent(command.SerializeToString(), metadata.SerializeToString())


def read(raw: Sequence[bytes], before: Sequence[bytes] = ()) -> list[Any]:
    """Return what a decoder makes of frames that come together, the damage of the last one too.

    Args: the frames; those that came before them.
    """
    decoder = FrameDecoder()
    if before:
        decoder.feed(b"".join(before))
    try:
        return [*parts(decoder.feed(b"".join(raw))), *parts(decoder.feed(b""))]
    except DamagedFrame as damage:
        return [str(damage)]


def parts(received: Sequence[Frame]) -> Iterator[Any]:
    for frame in received:
        for entry in frame.entries:
            yield frame.command.type, frame.command.message.consumer_id, *known(entry)
        if not frame.entries:
            yield frame.command


def known(entry: Entry) -> tuple[Any, ...]:
    """Return all that an entry knows of itself, before its metadata is looked at and then."""
    told = entry.num_messages, entry.batched, entry.plain, entry.credible
    return entry.id, told, entry.metadata, entry.packed, entry.size, entry.topic, entry.most, entry.damage


def same_as_alone(raw: Sequence[bytes]) -> bool:
    read_alone = {one: read([one]) for one in set(raw)}
    alone = [part for one in raw for part in read_alone[one]]
    expected = alone[-1:] if isinstance(alone[-1], str) else alone
    return read(raw) == expected and read(raw, raw[:SOME]) == expected


def flipped(data: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.no_cover  # thousands of examples of what the others try, which take three times as long when they count
@pytest.mark.parametrize("metadata", METADATA.values(), ids=list(METADATA))
def test_a_frame_that_differs_in_any_bit_is_read_as_it_is_alone(metadata: MessageMetadata) -> None:
    usual = message(metadata)
    others = [replace(usual, metadata=changed) for changed in flipped(usual.metadata)]
    others += [replace(usual, command=changed) for changed in flipped(usual.command)]
    others += [replace(usual, payload=PAYLOAD[:size]) for size in range(len(PAYLOAD))]
    others += [replace(usual, metadata_size=size) for size in range(len(usual.metadata) + 9)]
    for other in others:
        assert same_as_alone([usual.frame()] * SOME + [other.frame()]), other
    raw = usual.frame()
    for changed in flipped(raw[4:]):  # its sizes, magic number and checksum too
        assert same_as_alone([raw] * SOME + [raw[:4] + changed]), changed


@pytest.mark.parametrize(
    "twice",
    [
        b"\x58\x03",  # num_messages_in_batch again
        b"\x58\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x58\x83\x80\x80\x80\x00",  # 3, in more bytes than it needs
        b"\x58\xff\xff\xff\xff\x7f",  # 35 bits
        b"\x5a\x01\x03",  # the same field as bytes
        b"\x5d\x03\x00\x00\x00",  # and as four of them
        b"\x0a\x01q\x10\x05",  # the name and the sequence id again
        b"\x80\x10\x01",  # field 256, of a newer client
        b"\xdb\x02\x58\x07\xdc\x02",  # field 43 as a group, with such a number in it
    ],
)
def test_a_metadata_with_a_field_twice_is_read_as_it_is_alone(twice: bytes) -> None:
    usual = message(BATCH)
    for place in (0, len(usual.metadata)):
        first = replace(usual, metadata=usual.metadata[:place] + twice + usual.metadata[place:])
        others = [replace(first, metadata=changed) for changed in flipped(first.metadata)]
        for other in others:
            assert same_as_alone([first.frame()] * SOME + [other.frame()]), other


@pytest.mark.parametrize(
    "behind",
    [
        b"\x4a\x06\x12\x04\x08\x01\x10\x02",  # the message again, with another id
        b"\x4a\x0f\x12\x0d\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # entry -1
        b"\x4a\x0f\x12\x0d\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",  # 70 bits
        b"\x4a\x02\x08\x01",
        b"\x12\x02\x10\x05",  # another command
    ],
)
def test_a_command_with_a_field_twice_is_read_as_it_is_alone(behind: bytes) -> None:
    usual = message(BATCH)
    first = replace(usual, command=usual.command + behind)
    for changed in flipped(first.command):
        assert same_as_alone([first.frame()] * SOME + [replace(first, command=changed).frame()]), changed


@pytest.mark.parametrize(
    "checksum", [b"", b"\x0e\x01\0\0\0\5", b"\x0e\x02\0\0\0\2\x08\5"], ids=["none", "wrong", "the broker's metadata"]
)
@pytest.mark.parametrize("metadata", METADATA.values(), ids=list(METADATA))
def test_frames_without_a_right_checksum_are_read_as_each_alone(metadata: MessageMetadata, checksum: bytes) -> None:
    usual = replace(message(metadata), checksum=checksum)
    for other in (usual, message(metadata), replace(usual, payload=b""), replace(usual, metadata=b"")):
        assert same_as_alone([usual.frame()] * SOME + [other.frame()] * SOME)
        assert same_as_alone([other.frame()] * SOME + [usual.frame()] * SOME)


def test_entries_of_all_sizes_of_numbers_come_in_order() -> None:
    numbers = [number for power in range(0, 63, 7) for number in (2**power - 1, 2**power, 2**power + 1)]
    sent = []
    for number in numbers:
        metadata = MessageMetadata(producer_name="p", sequence_id=number, publish_time=number)
        metadata.num_messages_in_batch = number % 2**31
        sent += [message(metadata, entry=number).frame()] * 2
    assert same_as_alone(sent)
    entries = [entry for frame in FrameDecoder().feed(b"".join(sent)) for entry in frame.entries]
    assert [entry.id.entry for entry in entries] == [number for number in numbers for _ in range(2)]
    assert [entry.metadata.publish_time for entry in entries] == [number for number in numbers for _ in range(2)]


def test_other_consumers_and_commands_between_stay_in_their_places() -> None:
    ping = encode(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))
    damaged = replace(message(BATCH, entry=1111), checksum=b"\x0e\x01\0\0\0\5").frame()
    raw = [message(BATCH, entry).frame() for entry in range(1000, 1000 + SOME)]
    raw.append(ping)
    raw[7:7] = [ping, message(BATCH, 1500, consumer=2).frame(), message(BATCH, 1501, ledger=71).frame(), damaged]
    assert same_as_alone(raw)
    received = FrameDecoder().feed(b"".join(raw))
    assert [(frame.command.message.consumer_id, len(frame.entries)) for frame in received] == [
        (1, 7), (0, 0), (2, 1), (1, SOME - 5), (0, 0),
    ]  # fmt: skip
    assert [entry.damage != "" for entry in received[3].entries] == [False, True] + [False] * (SOME - 7)


def parses(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets an element for each frame that is parsed."""
    times: list[Any] = []
    parse = frames._frame

    def counted(*given: Any) -> Frame:
        times.append(given)
        return parse(*given)

    monkeypatch.setattr(frames, "_frame", counted)
    return times


@pytest.mark.parametrize(("forms", "parsed"), [(1, 1), (5, 5)])
def test_one_frame_of_each_form_is_parsed(forms: int, parsed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["p" * (size + 1) for size in range(forms)]
    sent = [
        message(
            MessageMetadata(
                producer_name=name[:-1] + "pq"[number % 2], sequence_id=200 + number, publish_time=2**40 + number,
                num_messages_in_batch=1 + number,
                properties=[KeyValue(key="k", value=f"{number:02}")],
            ),
            entry=1000 + number,
        ).frame()
        for number in range(SOME)
        for name in names
    ]  # fmt: skip
    times = parses(monkeypatch)
    (received,) = FrameDecoder().feed(b"".join(sent))
    assert len(times) == parsed
    assert [entry.num_messages for entry in received.entries[::forms]] == list(range(1, SOME + 1))
    assert [entry.id.entry for entry in received.entries[::forms]] == list(range(1000, 1000 + SOME))


def test_frames_that_each_have_a_form_of_their_own_cost_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = FrameDecoder()
    decoder.feed(message(BATCH).frame() * SOME)
    looks = 0
    look = FrameTemplate.entries

    def counted(*given: Any) -> Any:
        nonlocal looks
        looks += 1
        return look(*given)

    monkeypatch.setattr(FrameTemplate, "entries", counted)
    sizes = range(1, 2 * SOME)
    names = [MessageMetadata(producer_name="p" * size, sequence_id=0, publish_time=0) for size in sizes]
    sent = [message(metadata).frame() for metadata in names]
    expected = [part for one in sent for part in read([one])]
    for further in (3, 2):  # for the form that is known, too, as long as it is
        before = looks
        assert list(parts(decoder.feed(b"".join(sent)))) == expected
        assert looks == before + further


def test_the_looking_ends_after_two_forms_of_few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    times = parses(monkeypatch)
    few = MessageMetadata(producer_name="longer", sequence_id=1, publish_time=2)
    fewer = MessageMetadata(producer_name="still longer", sequence_id=1, publish_time=2)
    damaged = replace(message(BATCH), checksum=b"\x0e\x01\0\0\0\5").frame()
    some, others, many = [message(few).frame()] * 5, [message(fewer).frame()] * 5, [message(BATCH).frame()] * SOME
    for sent, parsed in (
        ([*some, *many], 2), ([*some, *others, *many], 2 + SOME), ([*many, *some, *others], 11), ([damaged, *many], 2),
    ):  # fmt: skip
        del times[:]
        FrameDecoder().feed(b"".join(sent))
        assert len(times) == parsed


def test_few_frames_are_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = FrameDecoder()
    decoder.feed(message(BATCH).frame() * SOME)
    monkeypatch.setattr(FrameTemplate, "of", lambda *_: pytest.fail("a form was learnt"))
    monkeypatch.setattr(FrameTemplate, "entries", lambda *_: pytest.fail("a form was looked for"))
    (frame,) = decoder.feed(message(BATCH).frame() * (_MANY - 1))
    assert len(frame.entries) == _MANY - 1


def test_a_form_is_known_until_no_message_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what becomes of the entry that was parsed is nothing to those that come later."""
    times = parses(monkeypatch)
    longer = MessageMetadata(producer_name="longer", sequence_id=1, publish_time=2)
    decoder = FrameDecoder()
    counts = []
    for metadata in (BATCH, BATCH, longer, longer, BATCH, BATCH):
        sent = [message(metadata, 1000 + number).frame() for number in range(SOME)]
        before = len(times)
        (received,) = decoder.feed(b"".join(sent))
        counts.append(len(times) - before)
        assert [known(entry) for entry in received.entries] == [
            known(FrameDecoder().feed(one)[0].entries[0]) for one in sent
        ]
        del times[:]
        for entry in received.entries:
            entry.topic, entry.most, entry.damage = "t", 5, "damaged"
    assert counts == [1, 0, 1, 0, 1, 0]
