"""Ranges read past the brokers: how much of a range its task reads from where the topic's segments are stored.

`read.from` decides. "bookies" reads each range so. "auto" reads what lies in closed ledgers so, and leaves the ledger
that is written to, which the brokers have in memory, to them. If a
part can't be read so, the brokers deliver it from the last message on that came, and they decide about losses.
"""

from __future__ import annotations

import logging
import ssl
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from eos.bookkeeper import (
    Bookies,
    BookieUnavailable,
    LedgerMetadata,
    LedgerReadError,
    MetadataUnreadable,
    by_map,
)
from eos.config import Credentials
from eos.errors import EosError, Refused
from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.reader import HistoryReader, HistoryUnavailable
from eos.history.segments import LEDGER, Segment, Segments, segments_of
from eos.pickling import PickledByName
from eos.pulsar.net.policies import entry_filters_apply
from eos.pulsar.net.transport import tls_context
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.brokers import admin_api
from eos.source.options import SourceOptions
from eos.source.policy_warnings import FORBIDDEN, PoliciesPort
from eos.source.ranges import Range

log = logging.getLogger("eos.source")

_BEHIND = 32
"""Segments behind a range that its task knows: a part of a topic of thousands of segments carries few of them."""


@dataclass(frozen=True, slots=True)
class SegmentPath(PickledByName):
    """The things that a task needs to read its range, or the beginning of it, past the brokers.

    Attributes:
        segments: of the topic, from the range's start on, and some behind its end: markers of its transactions may
            lie there.
        end: the last entry that is read so.
    """

    segments: Segments
    end: EntryId


class SegmentPlan:
    """Decides how the ranges of one query are read. On the driver."""

    def __init__(self, options: SourceOptions) -> None:
        """Args: the checked options. Raises InvalidInput where a certificate for the bookies can't be read."""
        if options.read_from != "brokers":
            _tls_of(options)
        self._options = options
        self._written_to: dict[str, int] = {}  # topic → the ledger that was written to when it was asked for last
        self._known: dict[str, tuple[EntryId, Segments | None]] = {}
        """{topic: an end that was readable before, and its segments; None where they can't be read so}."""
        self._warned = False

    def paths(self, parts: Sequence[Range]) -> list[SegmentPath | None]:
        """Return how each range of a batch is read, with one question for a topic, and forget its segments."""
        latest_first = sorted(range(len(parts)), key=lambda number: parts[number].end, reverse=True)
        found = {number: self.path(parts[number]) for number in latest_first}
        self._known.clear()
        return [found[number] for number in range(len(parts))]

    def path(self, part: Range) -> SegmentPath | None:
        """Return how a range is read past the brokers; None where it is read through them."""
        if self._options.read_from == "brokers" or part.compacted or self._is_tail(part):
            return None
        # An answer from before the end was readable would tell nothing of it, as the rule of visibility wants it.
        known = self._known.get(part.topic)
        if known is None or known[0] < part.end:
            known = self._known[part.topic] = part.end, self._segments(part)
        return None if known[1] is None else path_of(part, known[1], self._options.read_from)

    def _segments(self, part: Range) -> Segments | None:
        try:
            segments, why = self._asked(part)
        except EosError as error:
            segments, why = None, f"Its segments are not known: {error}"
        if why and not self._warned:
            log.warning("%s is read through its brokers. %s", part.topic, why)
        self._warned = self._warned or bool(why)
        return None if why else segments

    def _is_tail(self, part: Range) -> bool:
        if self._options.read_from != "auto":
            return False
        return part.start.entry.ledger == part.end.ledger == self._written_to.get(part.topic)

    def _asked(self, part: Range) -> tuple[Segments, str]:
        """Return the segments, and why they are of no use, in words; "" where they are."""
        with admin_api(self._options) as admin:
            segments = segments_of(admin, part.topic)
            filters = filters_of(admin, part.topic)
        self._written_to[part.topic] = max((one.ledger for one in segments.segments), default=-1)
        if filters:
            return segments, f"{entry_filters_apply(filters, part.topic)} Bookies have these entries too."
        if segments.last_confirmed < part.end:
            # A broker that has lost the topic and does not know it yet: the markers behind that place are not looked
            # for, so that committed rows would seem to be of open transactions.
            return segments, f"The admin API says that it ends with {segments.last_confirmed}, before {part.end}."
        return self._with_known_bookies(segments, part.topic), ""

    def _with_known_bookies(self, segments: Segments, topic: str) -> Segments:
        """Return the segments, without the metadata of each none of whose bookies has a known address.

        No task would find it, and each would ask for the patience of a reader. Without metadata it asks the brokers.
        """
        address_of = by_map(dict(self._options.bookie_addresses))
        known = tuple(
            one if has_known_bookie(one, address_of) else replace(one, metadata=None) for one in segments.segments
        )
        for before, now in zip(segments.segments, known, strict=True):
            elsewhere = (now.offloaded and self._options.offload) or (now.open and self._options.read_from == "auto")
            if before.metadata is not None and now.metadata is None and not elsewhere and not self._warned:
                bookies = ", ".join(sorted({one for _, ensemble in before.metadata.ensembles for one in ensemble}))
                log.warning(
                    "ledger %d of %s lies on %s, and no such id names a host and a port. It is read through its "
                    "brokers. Give the addresses in bookie.addresses",
                    now.ledger,
                    topic,
                    bookies,
                )
                self._warned = True
        return replace(segments, segments=known)


def has_known_bookie(segment: Segment, address_of: Callable[[str], object]) -> bool:
    """Return whether a bookie of a segment has a known address, as far as its bookies are known."""
    if segment.metadata is None:
        return True
    for bookie in {one for _, ensemble in segment.metadata.ensembles for one in ensemble}:
        with suppress(BookieUnavailable):
            address_of(bookie)
            return True
    return False


def filters_of(admin: PoliciesPort, topic: str) -> Sequence[str]:
    """Return the entry filters of a topic; none where its policies are not for this role to see, as the read warned."""
    try:
        return admin.entry_filters(topic)
    except Refused as refused:
        if refused.code not in FORBIDDEN:
            raise
        return ()


def path_of(part: Range, segments: Segments, read_from: str) -> SegmentPath | None:
    """Return how much of a range is read past the brokers, where its segments are known; None for nothing. Pure."""
    every, start = segments.segments, part.start.entry  # of thousands of them, and thousands of ranges: not one by one
    stored = (one for one in reversed(every) if one.last >= 0 and (read_from == "bookies" or not one.open))
    last = next((EntryId(one.ledger, one.last) for one in stored), start)
    end = min(last, part.end)
    if end <= start:
        return None
    first, behind = bisect_left(every, start.ledger, key=LEDGER), bisect_right(every, end.ledger, key=LEDGER)
    return SegmentPath(replace(segments, segments=every[first : behind + _BEHIND]), end)


def read_stored(part: Range, path: SegmentPath, options: SourceOptions) -> Iterator[Entry]:
    """Yield the visible entries of the part of a range that is read past the brokers, as far as that goes, in order.

    The yielded entries are right and complete up to the last one. A reason to stop is logged once.

    Raises InvalidInput where a certificate can't be read.
    """
    with Bookies(by_map(dict(options.bookie_addresses)), tls=_tls_of(options)) as bookies:
        # Ranges of one topic are spread over the replicas.
        reader = HistoryReader(
            part.topic,
            path.segments,
            bookies,
            refresh=_Refresh(options, part.topic),
            turn=part.end.ledger + part.end.entry,
            offloads=None if options.offload is None else OffloadedLedgers(options.offload),
        )
        try:
            for number, entry in enumerate(reader.read(part.start.entry, path.end)):
                if number == 0 and part.first is not None and entry.id != part.first:
                    log.warning("%s begins with %s at its bookies. It is read through its brokers", part, entry.id)
                    return
                yield entry
        except HistoryUnavailable as error:
            log.warning("the rest of %s is read through its brokers: %s", part, error)


def _tls_of(options: SourceOptions) -> ssl.SSLContext | None:
    return None if options.bookie_tls is None else tls_context(options.bookie_tls, Credentials())


class _Refresh:
    """Reads a ledger's metadata again, in a task: AutoRecovery replaces the bookies of closed ledgers."""

    def __init__(self, options: SourceOptions, topic: str) -> None:
        self._options, self._topic = options, topic

    def __call__(self, ledger: int) -> LedgerMetadata:
        try:
            with admin_api(self._options) as admin:
                segments = segments_of(admin, self._topic)
        except EosError as error:
            raise LedgerReadError(f"the metadata of ledger {ledger} can't be read again: {error}") from error
        found = next((one.metadata for one in segments.segments if one.ledger == ledger), None)
        if found is None:
            raise MetadataUnreadable(f"ledger {ledger} is no longer on bookies")
        return found
