"""The segments of a topic: its ledgers, and where each one's entries are. Only the admin API knows it.

`internalStats?metadata=true` needs the right to consume, and gives each ledger with its metadata in BookKeeper (without
the password) and whether it was offloaded; `internal-info` names the UUID of an offloaded one, not its bucket.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from eos.bookkeeper import LedgerMetadata, MetadataUnreadable, parse_printed
from eos.pickling import PickledByName
from eos.pulsar.wire.message_id import EntryId

if TYPE_CHECKING:
    from eos.pulsar.net.admin import Admin


LEDGER = attrgetter("ledger")
"""The order of a topic's segments."""


@dataclass(frozen=True, slots=True)
class Segment(PickledByName):
    """One ledger of a topic.

    Attributes:
        ledger: its id.
        last: its last entry's number, as far as was known when it was asked for; -1 where it is empty.
        size: bytes of its entries; 0 of the one that is written to.
        open: whether it is the one that is written to.
        metadata: where its entries are; None where the bookies no longer have it, or its metadata can't be read.
        offloaded: the UUID under which it lies in secondary storage; None where it does not.
    """

    ledger: int
    last: int
    size: int
    open: bool
    metadata: LedgerMetadata | None
    offloaded: str | None = None


@dataclass(frozen=True, slots=True)
class Segments(PickledByName):
    """The segments of one physical topic, in order.

    Attributes:
        segments: each with the entries that it had.
        last_confirmed: the last entry of the topic that was stored for certain, markers included.
    """

    segments: tuple[Segment, ...]
    last_confirmed: EntryId

    def after(self, start: EntryId) -> tuple[Segment, ...]:
        """Return the segments that hold entries after this one."""
        first = bisect_left(self.segments, start.ledger, key=LEDGER)
        return tuple(one for one in self.segments[first:] if one.last >= 0 and EntryId(one.ledger, one.last) > start)


def segments_of(admin: Admin, topic: str) -> Segments:
    """Ask for the segments of a topic without partitions, or of a partition. Raises what `Admin` raises."""
    told = admin.internal_stats(topic, metadata=True)
    last_confirmed = EntryId.parse(str(told["lastConfirmedEntry"]))
    ledgers = sorted(told["ledgers"], key=lambda one: int(one["ledgerId"]))
    offloaded = _offloaded(admin.internal_info(topic)) if any(one.get("offloaded") for one in ledgers) else {}
    newest = max((int(one["ledgerId"]) for one in ledgers), default=-1)
    segments = tuple(_segment(one, newest, last_confirmed, offloaded) for one in ledgers)
    return Segments(segments, last_confirmed)


def _segment(told: Mapping[str, Any], newest: int, last_confirmed: EntryId, offloaded: Mapping[int, str]) -> Segment:
    ledger = int(told["ledgerId"])
    try:
        metadata = parse_printed(ledger, str(told["metadata"])) if told.get("metadata") else None
    except MetadataUnreadable:
        metadata = None
    # The broker counts no entries in the ledger that it writes to.
    last = last_confirmed.entry if ledger == last_confirmed.ledger else int(told["entries"]) - 1
    return Segment(ledger, last, int(told["size"]), ledger == newest, metadata, offloaded.get(ledger))


def _offloaded(told: Mapping[str, Any]) -> dict[int, str]:
    return {
        int(one["ledgerId"]): str(one["offloadedContextUuid"])
        for one in told.get("ledgers", ())
        if one.get("isOffloaded") and one.get("offloadedContextUuid")
    }
