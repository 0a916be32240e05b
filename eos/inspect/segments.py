"""The segments of a topic, where each is stored, and which reader `read.from = auto` takes for it.

From the admin API, and from secondary storage, which is asked whether it has a segment. Nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.segments import Segment, segments_of
from eos.pulsar.net.admin import if_there

if TYPE_CHECKING:
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client


class Storage(StrEnum):
    """Where a segment is stored."""

    OPEN = "open"
    BOOKIES = "bookies"
    BOTH = "bookies and offloaded"
    OFFLOADED = "offloaded"
    UNKNOWN = "unknown"


class SegmentReader(StrEnum):
    """The reader of a segment."""

    BOOKIES = "bookies"
    BROKERS = "brokers"
    OFFLOADED = "secondary storage"


@dataclass(frozen=True, slots=True)
class TopicSegment:
    """One segment of a topic.

    Attributes:
        topic: the physical topic's full name.
        ledger: the segment's ledger id.
        entries: how many it holds, markers and aborted ones included.
        bytes: of its entries; 0 of the open one, which the broker does not count.
        storage: where it is.
        bookies: the ids of those that store entries of it. Empty where they are not known.
        reader: which one read.from = auto takes.
    """

    topic: str
    ledger: int
    entries: int
    bytes: int
    storage: Storage
    bookies: tuple[str, ...]
    reader: SegmentReader


def segments(
    client: Client, admin: Admin, topic: str, offloads: OffloadedLedgers | None = None
) -> Iterator[TopicSegment]:
    """Yield the segments of a topic, partition by partition, the oldest first.

    Args: the brokers; their admin API; the topic; the secondary storage, None where it is not to be read directly.

    Raises TopicMissing, NetworkError where brokers or the admin API do not answer, or refuse to tell, and
    OffloadUnavailable where the secondary storage does.
    """
    for physical in client.physical_topics(topic):
        found = if_there(partial(segments_of, admin), physical)
        for one in () if found is None else found.segments:
            yield _described(physical, one, offloads)


def _described(topic: str, one: Segment, offloads: OffloadedLedgers | None) -> TopicSegment:
    ensembles = () if one.metadata is None else one.metadata.ensembles
    bookies = tuple(sorted({bookie for _, ensemble in ensembles for bookie in ensemble}))
    storage = _storage(one)
    reader = _reader(topic, one, storage, offloads)
    return TopicSegment(topic, one.ledger, one.last + 1, one.size, storage, bookies, reader)


def _reader(topic: str, one: Segment, storage: Storage, offloads: OffloadedLedgers | None) -> SegmentReader:
    if offloads is not None and one.offloaded is not None:
        # The source tries there first, and goes to the brokers where the segment is missing.
        held = offloads.holds(topic, one.ledger, one.offloaded)
        return SegmentReader.OFFLOADED if held else SegmentReader.BROKERS
    return SegmentReader.BOOKIES if storage in (Storage.BOOKIES, Storage.BOTH) else SegmentReader.BROKERS


def _storage(one: Segment) -> Storage:
    if one.open:
        return Storage.OPEN
    if one.metadata is None:
        return Storage.UNKNOWN if one.offloaded is None else Storage.OFFLOADED
    return Storage.BOOKIES if one.offloaded is None else Storage.BOTH
