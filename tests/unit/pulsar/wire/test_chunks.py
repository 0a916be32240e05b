"""Messages in chunks: put together at their last one, whatever lies between."""

from __future__ import annotations

import pytest

from eos.errors import DamagedFrame
from eos.pulsar.wire.chunks import ChunkAssembler, ChunksMissing
from eos.pulsar.wire.compression import TYPES, compress
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata


def chunk(place: int, name: str, number: int, count: int, part: bytes, total: int) -> Entry:
    metadata = MessageMetadata(
        producer_name="p",
        uuid=name,
        chunk_id=number,
        num_chunks_from_msg=count,
        total_chunk_msg_size=total,
        partition_key=b"k",
    )
    return Entry(EntryId(3, place), metadata, part, len(part) + 10, "t")


def plain(place: int, value: bytes) -> Entry:
    return Entry(EntryId(3, place), MessageMetadata(), value, len(value), "t")


HALVES = ((b"ne", b"ar"), (b"fa", b"r!"))


def put_together(entries: list[Entry], assembler: ChunkAssembler | None = None) -> list[tuple[int, bytes]]:
    """Return the entry and the value of each message."""
    assembler = assembler or ChunkAssembler()
    whole = [one for one in map(assembler.take, entries) if one is not None]
    values = decode(whole, ["value"]).column("value").to_pylist()
    return [(one.id.entry, value) for one, value in zip(whole, values, strict=True)]


def test_a_message_is_where_its_last_chunk_is() -> None:
    entries = [
        chunk(0, "a", 0, 3, b"aa", 5),
        plain(1, b"x"),
        chunk(2, "b", 0, 2, b"bb", 3),
        chunk(3, "a", 1, 3, b"aa", 5),
        chunk(4, "b", 1, 2, b"b", 3),
        chunk(5, "a", 2, 3, b"a", 5),
    ]
    assert put_together(entries) == [(1, b"x"), (4, b"bbb"), (5, b"aaaaa")]


def test_messages_of_one_id_from_two_clusters_are_two() -> None:
    """Their chunks look alike: the same numbers and sizes. Producers of one name count from 0 in each cluster."""
    near, far = ([chunk(0, "app-0", number, 2, part, 4) for number, part in enumerate(parts)] for parts in HALVES)
    for one in far:
        one.metadata.replicated_from = "west"
    for order in ([near[0], far[0], near[1], far[1]], [near[0], far[0], far[1], near[1]], [*far, *near]):
        assert sorted(value for _, value in put_together(order)) == [b"far!", b"near"]


def test_the_whole_message_has_the_size_and_the_metadata_of_its_chunks() -> None:
    assembler = ChunkAssembler()
    assert assembler.take(chunk(0, "a", 0, 2, b"aa", 3)) is None
    whole = assembler.take(chunk(1, "a", 1, 2, b"a", 3))
    assert whole is not None
    assert (whole.size, whole.chunked, whole.metadata.partition_key) == (23, False, b"k")


def test_a_message_is_compressed_as_a_whole() -> None:
    value = b"long" * 1000
    packed = bytes(compress(value, "zstd"))
    entries = [chunk(0, "a", 0, 2, packed[:10], len(packed)), chunk(1, "a", 1, 2, packed[10:], len(packed))]
    for entry in entries:
        entry.metadata.compression, entry.metadata.uncompressed_size = TYPES["zstd"], len(value)
    assert put_together(entries) == [(1, value)]


@pytest.mark.parametrize("sent", [[0, 0, 1, 2], [0, 1, 0, 1, 2], [0, 1, 1, 2], [0, 1, 2, 2], [0, 1, 2, 1, 2]])
def test_chunks_that_were_sent_again_count_once(sent: list[int]) -> None:
    entries = [chunk(place, "a", number, 3, b"%d" % number, 3) for place, number in enumerate(sent)]
    assert put_together(entries) == [(sent.index(2), b"012")]


def test_a_message_that_was_begun_anew_has_nothing_of_the_first_attempt() -> None:
    first = [chunk(0, "a", 0, 3, b"o", 3), chunk(1, "a", 1, 3, b"l", 3)]
    second = [chunk(place, "a", place - 2, 3, b"n", 3) for place in (2, 3, 4)]
    assert put_together(first + second) == [(4, b"nnn")]


def test_a_message_without_its_last_chunk_is_nothing() -> None:
    assert put_together([chunk(0, "a", 0, 2, b"a", 2), plain(1, b"x"), chunk(2, "b", 1, 3, b"b", 3)]) == [(1, b"x")]


@pytest.mark.parametrize("came", [[2], [1, 2], [0, 2]])
def test_a_last_chunk_without_the_earlier_ones_is_an_error_that_names_it(came: list[int]) -> None:
    assembler = ChunkAssembler()
    entries = [chunk(place, "a", number, 3, b"a", 3) for place, number in enumerate(came)]
    for entry in entries[:-1]:
        assert assembler.take(entry) is None
    with pytest.raises(ChunksMissing, match=rf"entry {entries[-1].id} of t is the last of 3 chunks") as caught:
        assembler.take(entries[-1])
    assert caught.value.entry == entries[-1].id


def test_the_message_begun_first_is_given_up_when_too_much_is_unfinished() -> None:
    assembler = ChunkAssembler(max_bytes=20)
    entries = [
        chunk(0, "a", 0, 2, b"a" * 6, 7),
        chunk(1, "b", 0, 3, b"b" * 6, 20),
        chunk(2, "b", 1, 3, b"b" * 13, 20),
        chunk(3, "b", 2, 3, b"b", 20),
    ]
    assert put_together(entries, assembler) == [(3, b"b" * 20)]
    with pytest.raises(ChunksMissing):
        assembler.take(chunk(4, "a", 1, 2, b"a", 7))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (chunk(1, "a", -1, 3, b"b", 6), "it is chunk -1 of 3, counted from 0"),
        (chunk(1, "a", 3, 3, b"b", 6), "it is chunk 3 of 3"),
        (chunk(1, "a", 1, 3, b"b", 101), "its message has 101 bytes in its chunks, or once decompressed"),
        (chunk(1, "a", 1, 3, b"b", -1), "its message has 0 bytes in its chunks"),
        (chunk(1, "a", 1, 2, b"b", 6), "it tells another number of chunks, or of their bytes, than the first chunk"),
        (chunk(1, "a", 1, 3, b"b", 7), "it tells another number of chunks, or of their bytes, than the first chunk"),
        (
            chunk(1, "a", 1, 3, b"b" * 90, 6),
            "the chunks up to it have more than the 54 bytes that their message can have",
        ),
    ],
)
def test_a_chunk_that_can_be_none_of_its_message_is_damaged(wrong: Entry, why: str) -> None:
    assembler = ChunkAssembler(max_bytes=100)
    assembler.take(chunk(0, "a", 0, 3, b"aaa", 6))
    with pytest.raises(DamagedFrame, match=f"^entry 3:1 of t can't be read: {why}"):
        assembler.take(wrong)


def test_chunks_that_make_no_whole_message_are_damaged() -> None:
    assembler = ChunkAssembler()
    assembler.take(chunk(0, "a", 0, 2, b"aa", 5))
    with pytest.raises(DamagedFrame, match="entry 3:1 of t can't be read: its message has 4 bytes in 2 chunks"):
        assembler.take(chunk(1, "a", 1, 2, b"aa", 5))
