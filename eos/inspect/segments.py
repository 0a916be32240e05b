"""The segments of a topic, where each is stored, and which reader `read.from = auto` takes for it.

From the admin API, and from secondary storage, which is asked whether it has a segment. Nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from eos.bookkeeper import by_id
from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.segments import Segment, segments_of
from eos.pulsar.net.admin import if_there
from eos.pulsar.net.policies import entry_filters_apply
from eos.source.segment_path import filters_of, has_known_bookie

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
        why: why it is not the bookies that have the segment; empty where it is, and where another reason is plain.
    """

    topic: str
    ledger: int
    entries: int
    bytes: int
    storage: Storage
    bookies: tuple[str, ...]
    reader: SegmentReader
    why: str = ""


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
        if found is None:
            continue
        filters = filters_of(admin, physical)
        for one in found.segments:
            told = _described(physical, one, offloads)
            if filters and told.reader is not SegmentReader.BROKERS:
                why = f"{entry_filters_apply(filters, physical)} So the source reads the topic through them."
                told = replace(told, reader=SegmentReader.BROKERS, why=why)
            yield told


def _described(topic: str, one: Segment, offloads: OffloadedLedgers | None) -> TopicSegment:
    ensembles = () if one.metadata is None else one.metadata.ensembles
    bookies = tuple(sorted({bookie for _, ensemble in ensembles for bookie in ensemble}))
    storage = _storage(one)
    reader, why = _reader(topic, one, storage, offloads), ""
    if reader is SegmentReader.BOOKIES and not has_known_bookie(one, by_id):
        reader = SegmentReader.BROKERS
        why = (
            f"No id of {', '.join(bookies)} names a host and a port. The source reads their segments from them where "
            "it has the addresses in bookie.addresses."
        )
    return TopicSegment(
        topic=topic,
        ledger=one.ledger,
        entries=one.last + 1,
        bytes=one.size,
        storage=storage,
        bookies=bookies,
        reader=reader,
        why=why,
    )


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
