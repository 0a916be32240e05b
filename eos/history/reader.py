"""Reads the visible entries of a closed range of a topic from where its segments are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eos.bookkeeper import Bookies, LedgerMetadata, LedgerReader, LedgerReadError
from eos.errors import DamagedFrame, EosError
from eos.history.offload import OffloadError
from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.segments import Segment, Segments
from eos.history.visibility import TooManyUndecided, Visibility
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.stored_entry import entry_of

MAX_HELD_BYTES = 64 * 1024 * 1024
"""Bytes of entries that may wait for the end of a transaction, about."""


class HistoryUnavailable(EosError):
    """The range can't be read past the brokers, or not to its end: read the rest through them, which decide.

    It says nothing of the data. A broker may still read a segment that is missing here, and reports a loss.
    """


class HistoryReader:
    """Reads ranges of one physical topic."""

    def __init__(
        self,
        topic: str,
        segments: Segments,
        bookies: Bookies,
        *,
        refresh: Callable[[int], LedgerMetadata] | None = None,
        turn: int = 0,
        offloads: OffloadedLedgers | None = None,
        max_held_bytes: int = MAX_HELD_BYTES,
        patience_s: float = 20.0,
    ) -> None:
        """Read nothing yet.

        Args:
            topic: the physical topic.
            segments: where its entries are. They must have been asked for after the end of the ranges was known to be
                readable: then the markers up to their last confirmed entry tell what is visible. Segments
                behind the ranges may be left out: a range whose markers lie there is not read to its end.
            bookies: lends the connections.
            refresh: reads the metadata of a ledger again, when none of its bookies can be reached. Default: not read.
            turn: which replica is asked first. Default 0.
            offloads: reads the segments that were offloaded, also while bookies still store them. Default: not read.
            max_held_bytes: bytes of entries that may wait for the end of a transaction. Default 64 MiB.
            patience_s: how long an entry is asked for while its bookies can't be reached. Default 20.
        """
        self._topic, self._segments, self._bookies = topic, segments, bookies
        self._refresh, self._turn, self._offloads = refresh, turn, offloads
        self._max_held_bytes, self._patience_s = max_held_bytes, patience_s

    def read(self, start: EntryId, end: EntryId) -> Iterator[Entry]:
        """Yield the visible entries after `start`, up to and including `end`, in order.

        Args:
            start: an entry that is stored, or one before the first of its ledger; (-1, -1) before all.
            end: a readable entry.

        Raises HistoryUnavailable. The entries that were yielded before it are right, and complete up to there.
        """
        visibility = Visibility(end, self._max_held_bytes)
        try:
            for entry in self._stored(start, end):
                yield from visibility.take(entry)
                if entry.id >= end and not visibility.undecided:
                    return
            yield from visibility.end()
        except (LedgerReadError, OffloadError, DamagedFrame, TooManyUndecided) as error:
            raise HistoryUnavailable(f"{self._topic} can't be read past the brokers ({error})") from error

    def _stored(self, start: EntryId, end: EntryId) -> Iterator[Entry]:
        """Yield all entries after `start` as they are stored, up to the last confirmed one."""
        if start.ledger >= 0 and start.ledger not in {one.ledger for one in self._segments.segments}:
            # Only a broker can tell which other data are gone with it.
            raise HistoryUnavailable(f"{self._topic} no longer has ledger {start.ledger}, in which reading begins")
        for segment in self._segments.after(start):
            first = max(start.entry + 1, 0) if segment.ledger == start.ledger else 0
            if segment.ledger == end.ledger and first <= end.entry <= segment.last:
                # Nothing after the end is asked for until it is known that markers are missing.
                yield from self._entries(segment, first, end.entry)
                first = end.entry + 1
            yield from self._entries(segment, first, segment.last)
        if self._segments.segments[-1].ledger < self._segments.last_confirmed.ledger:
            raise HistoryUnavailable(f"a transaction of {self._topic} ends many ledgers after {end}, or is still open")

    def _entries(self, segment: Segment, first: int, last: int) -> Iterator[Entry]:
        if first > last:
            return
        if self._offloads is not None and segment.offloaded is not None:
            # First, as brokers do: bookies may delete their copy at any moment.
            offloaded = self._offloads.read(self._topic, segment.ledger, segment.offloaded, first, last)
            for number, checked in offloaded:
                yield self._entry(segment, number, checked)
            return
        for entries in self._reader(segment).read(first, last):
            for number, stored in entries:
                yield self._entry(segment, number, stored)

    def _entry(self, segment: Segment, number: int, stored: Buffer) -> Entry:
        where = EntryId(segment.ledger, number)
        try:
            return entry_of(where, memoryview(stored), 0, len(stored), self._topic)
        except DamagedFrame as damage:
            raise DamagedFrame(f"entry {where} of {self._topic} is damaged ({damage})") from damage

    def _reader(self, segment: Segment) -> LedgerReader:
        if segment.metadata is None:
            told = "it was offloaded, and offload.url is not given"
            where = told if segment.offloaded else "its metadata can't be read"
            raise HistoryUnavailable(f"ledger {segment.ledger} of {self._topic} is not on bookies: {where}")
        refresh, ledger = self._refresh, segment.ledger
        return LedgerReader(
            self._bookies,
            segment.metadata,
            refresh=None if refresh is None else lambda: refresh(ledger),
            turn=self._turn,
            patience_s=self._patience_s,
            entry_bytes=segment.size // (segment.last + 1) if segment.size else None,
        )
