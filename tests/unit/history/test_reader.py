from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from eos.bookkeeper import Bookies, Digest, LedgerMetadata, LedgerState
from eos.bookkeeper.wire.digest import StoredEntries
from eos.history.offload import OffloadMissing
from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.reader import HistoryReader, HistoryUnavailable
from eos.history.segments import Segment, Segments
from eos.history.visibility import ABORT, COMMIT
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from tests.simulation.bookie import SimulatedBookie

# Two ledgers: "plain", a transaction's number, or its marker.
LEDGERS: dict[int, list[object]] = {
    5: ["plain", 1, 2, (1, COMMIT), "plain"],
    8: [2, (2, ABORT), 3, "plain", (3, COMMIT)],
}
VISIBLE = [EntryId(5, 0), EntryId(5, 1), EntryId(5, 4), EntryId(8, 2), EntryId(8, 3)]
BEGINNING = EntryId(-1, -1)


def message(kind: object) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=0)
    if kind != "plain":
        metadata.txnid_most_bits = 0
        metadata.txnid_least_bits = kind[0] if isinstance(kind, tuple) else int(str(kind))
    if isinstance(kind, tuple):
        metadata.marker_type = kind[1]
    packed = metadata.SerializeToString()
    return len(packed).to_bytes(4) + packed + b"payload"


@pytest.fixture
def bookie() -> Iterator[SimulatedBookie]:
    with SimulatedBookie() as made:
        for ledger, kinds in LEDGERS.items():
            entries = StoredEntries(ledger, Digest.CRC32C)
            for number, kind in enumerate(kinds):
                made.entries[ledger, number] = entries.stored(number, number - 1, 0, message(kind))
        yield made


@pytest.fixture
def bookies() -> Iterator[Bookies]:
    with Bookies(timeout_s=0.3) as opened:
        yield opened


@pytest.fixture
def segments(bookie: SimulatedBookie) -> Segments:
    def segment(ledger: int, entries: int, newest: bool) -> Segment:
        metadata = LedgerMetadata(ledger, LedgerState.OPEN, 1, 1, 1, ((0, (bookie.id,)),))
        return Segment(ledger, entries - 1, 0, newest, metadata)

    return Segments((segment(5, 5, False), segment(6, 0, False), segment(8, 5, True)), EntryId(8, 4))


def read(reader: HistoryReader, start: EntryId, end: EntryId) -> list[EntryId]:
    return [entry.id for entry in reader.read(start, end)]


def test_each_range_comes_with_what_is_visible_of_it(segments: Segments, bookies: Bookies) -> None:
    reader = HistoryReader("t", segments, bookies)
    every = [EntryId(ledger, number) for ledger, kinds in LEDGERS.items() for number in range(len(kinds))]
    starts = [BEGINNING, EntryId(5, -1), EntryId(8, -1), *every]
    for start in starts:
        for end in every:
            if start < end:
                assert read(reader, start, end) == [one for one in VISIBLE if start < one <= end], (start, end)


def test_behind_the_end_nothing_is_asked_for_unless_a_marker_is_missing(
    segments: Segments, bookies: Bookies, bookie: SimulatedBookie
) -> None:
    read(HistoryReader("t", segments, bookies), BEGINNING, EntryId(5, 0))
    assert all(first == 0 for _, first in bookie.asked)
    bookie.asked.clear()
    read(HistoryReader("t", segments, bookies), EntryId(5, 0), EntryId(5, 1))
    assert max(first for _, first in bookie.asked) > 1


def test_a_marker_behind_the_segments_that_are_known_is_not_taken_for_missing(
    segments: Segments, bookies: Bookies
) -> None:
    known = replace(segments, segments=segments.segments[:2])
    entries = HistoryReader("t", known, bookies).read(BEGINNING, EntryId(5, 4))
    assert [next(entries).id, next(entries).id] == VISIBLE[:2]
    with pytest.raises(HistoryUnavailable, match="a transaction of t ends many ledgers after 5:4"):
        next(entries)  # 5:4 is visible, and stands behind 5:2, whose marker lies in ledger 8
    assert read(HistoryReader("t", known, bookies), BEGINNING, EntryId(5, 1)) == VISIBLE[:2]


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ("entry", "entry 8:0 is lost"),
        ("damaged", "entry 8:0 of t is damaged"),
        ("bookie", "127.0.0.1:1 could not be asked"),
        ("metadata", "its metadata can't be read"),
        ("offloaded", "it was offloaded, and offload.url is not given"),
        ("ledger", "t no longer has ledger 3"),
    ],
)
def test_what_cannot_be_read_here_is_left_to_the_brokers_after_a_right_beginning(
    segments: Segments, bookies: Bookies, bookie: SimulatedBookie, lacks: str, said: str
) -> None:
    first, empty, last = segments.segments
    start, expected = BEGINNING, VISIBLE[:2]  # 5:4 waits for a marker in ledger 8
    if lacks == "entry":
        del bookie.entries[8, 0]
    elif lacks == "damaged":
        bookie.entries[8, 0] = StoredEntries(8, Digest.CRC32C).stored(0, -1, 0, b"\0\0\0\xff")
    elif lacks == "bookie":
        assert last.metadata is not None
        last = replace(last, metadata=replace(last.metadata, ensembles=((0, ("127.0.0.1:1",)),)))
    elif lacks in ("metadata", "offloaded"):
        last = replace(last, metadata=None, offloaded="uuid" if lacks == "offloaded" else None)
    else:
        start, expected = EntryId(3, 0), []
    reader = HistoryReader("t", replace(segments, segments=(first, empty, last)), bookies, patience_s=0)
    came: list[EntryId] = []

    def read_on() -> None:
        for entry in reader.read(start, EntryId(8, 3)):
            came.append(entry.id)

    with pytest.raises(HistoryUnavailable, match=said):
        read_on()
    assert came == expected


def test_a_transaction_that_is_too_large_to_wait_for_is_left_to_the_brokers(
    segments: Segments, bookies: Bookies
) -> None:
    with pytest.raises(HistoryUnavailable, match="wait for the end of the transaction"):
        read(HistoryReader("t", segments, bookies, max_held_bytes=10), BEGINNING, EntryId(8, 3))


class Offloads(OffloadedLedgers):
    """Secondary storage that has some entries, without their checksums; after them it fails."""

    def __init__(self, entries: dict[tuple[int, int], bytes]) -> None:
        self._entries = entries

    def read(self, topic: str, ledger: int, uuid: str, first: int, last: int) -> Iterator[tuple[int, memoryview]]:
        assert (topic, uuid) == ("t", "uuid")
        for number in range(first, last + 1):
            if (ledger, number) not in self._entries:
                raise OffloadMissing(f"entry {ledger}:{number} is not there")
            yield number, memoryview(self._entries[ledger, number])


@pytest.mark.parametrize("kept", [True, False], ids=["bookies have it too", "only offloaded"])
def test_what_was_offloaded_is_read_from_secondary_storage_and_not_from_bookies(
    segments: Segments, bookies: Bookies, bookie: SimulatedBookie, kept: bool
) -> None:
    first, empty, last = segments.segments
    moved = replace(first, offloaded="uuid", metadata=first.metadata if kept else None)
    entries = {(5, number): message(kind) for number, kind in enumerate(LEDGERS[5])}
    for one in entries:
        del bookie.entries[one]
    known = replace(segments, segments=(moved, empty, last))
    reader = HistoryReader("t", known, bookies, offloads=Offloads(entries))
    assert read(reader, BEGINNING, EntryId(8, 3)) == VISIBLE

    del entries[5, 1]
    with pytest.raises(HistoryUnavailable, match=r"t can't be read past the brokers \(entry 5:1 is not there"):
        read(reader, BEGINNING, EntryId(8, 3))
