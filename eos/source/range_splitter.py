"""More Spark partitions than topic partitions: ranges are cut by what the ledgers hold. Pure, as planning is.

A range is cut where about equal shares of its bytes end, counted from the closed ledgers: their entries and sizes never
change, and the entries of the last ledger of a range are numbered. So a batch that is run again is cut at the same
places, whatever was written meanwhile. A place that the arithmetic finds may hold a marker or an aborted entry. Then
the cut is made at the first message after it. So each part ends with a message that must come, and the next one begins
with the proof that it is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from eos.errors import TopicMissing
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.offsets import Position
from eos.source.ranges import Range

PART_BYTES = 128 * 1024 * 1024
"""As many as Spark puts into one partition of files by default."""


class TopicLedgers(Protocol):
    """The questions of cutting to the brokers."""

    def ledgers(self, topic: str) -> Sequence[TopicLedger]:
        """Return the ledgers of a physical topic, in their order. Raises InvalidInput where that is not allowed."""
        ...

    def firsts(self, topic: str, entries: Sequence[EntryId]) -> list[EntryId | None]:
        """Return the first message at or after each of these entries. None where it was lost."""
        ...


Splitter = Callable[[list[Range]], list[Range]]


def whole(ranges: list[Range]) -> list[Range]:
    """Return the ranges as they are: each is read by one task."""
    return ranges


def splitter(places: TopicLedgers, min_partitions: int, part_bytes: int = PART_BYTES) -> Splitter:
    """Return what cuts ranges.

    Args:
        places: reaches the brokers.
        min_partitions: how many ranges there should be altogether, at least, where there are so many entries.
        part_bytes: bytes of entries, about, that a range may have.
    """

    def split(ranges: list[Range]) -> list[Range]:
        compacted = [part for part in ranges if part.compacted]  # one task reads it (`eos.source.compacted_topic`)
        ranges = [part for part in ranges if not part.compacted]
        stretches = [list(_stretches(part, _known(places, part))) for part in ranges]
        totals = [sum(one.entries for one in some) for some in stretches]
        everything = max(1, sum(totals))
        cut: list[Range] = []
        for part, some, entries in zip(ranges, stretches, totals, strict=True):
            by_share = -(-min_partitions * entries // everything)
            by_size = -(-sum(one.size for one in some) // part_bytes)
            cut += cut_at(part, _inner(some, min(max(by_share, by_size), entries)), places)
        return compacted + cut

    return split


def cut_at(part: Range, ends: Iterable[EntryId], places: TopicLedgers) -> list[Range]:
    """Cut a range after these entries, which rise. Where one holds no message, cut after the next that does.

    A lost part is not cut. The task that reads it reports the loss.
    """
    ranges: list[Range] = []
    left = part
    for found in places.firsts(part.topic, [end for end in ends if part.start.entry < end < part.end]):
        if found is None or found >= left.end:
            break
        if found > left.start.entry:  # else it is the message at which the cut before it was made
            ranges.append(replace(left, end=found, end_delivered=True))
            left = replace(left, start=Position(found), first=None)
    return [*ranges, left]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Entries of one ledger that belong to a range, each taken to have the same size."""

    first: EntryId
    entries: int
    each: int

    @property
    def size(self) -> int:
        return self.entries * self.each


def _known(places: TopicLedgers, part: Range) -> Sequence[TopicLedger]:
    try:
        return places.ledgers(part.topic) if part.start.entry.ledger < part.end.ledger else ()
    except TopicMissing:
        return ()


def _stretches(part: Range, ledgers: Sequence[TopicLedger]) -> Iterator[_Stretch]:
    start, each = part.start.entry, 1
    for ledger in ledgers:
        if start.ledger <= ledger.id < part.end.ledger and ledger.entries:
            each = max(1, ledger.size // ledger.entries)
            first = start.entry + 1 if ledger.id == start.ledger else 0
            if first < ledger.entries:
                yield _Stretch(EntryId(ledger.id, first), ledger.entries - first, each)
    first = start.entry + 1 if part.end.ledger == start.ledger else 0
    yield _Stretch(EntryId(part.end.ledger, first), part.end.entry + 1 - first, each)


def _inner(stretches: Sequence[_Stretch], parts: int) -> Iterator[EntryId]:
    """Return the last entry of each part but the last one."""
    total = sum(one.size for one in stretches)
    passed = place = 0
    for part in range(1, parts):
        wanted = total * part // parts
        while passed + stretches[place].size < wanted:
            passed += stretches[place].size
            place += 1
        one = stretches[place]
        inside = -(-(wanted - passed) // one.each)
        yield EntryId(one.first.ledger, one.first.entry + inside - 1)
