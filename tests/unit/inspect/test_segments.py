"""What `eos plan` says of a segment, by where it is stored."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos.bookkeeper import LedgerMetadata
from eos.bookkeeper.wire.metadata import LedgerState
from eos.errors import Refused
from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.segments import Segment, Segments
from eos.inspect import segments as inspected
from eos.inspect.segments import Storage, TopicSegment
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import physical_topics
from eos.pulsar.wire.message_id import EntryId

TOPIC = "persistent://public/default/rows"
STORED = LedgerMetadata(
    7, LedgerState.CLOSED, 2, 2, 2, ((0, ("b:3181", "a:3181")), (3, ("b:3181", "c:3181"))), last_entry=4
)


class TwoPartitions:
    def physical_topics(self, topic: str) -> list[str]:
        return physical_topics(topic, 2)


def described(
    monkeypatch: pytest.MonkeyPatch,
    *found: Segment,
    offloads: OffloadedLedgers | None = None,
    filters: tuple[str, ...] | Refused = (),
) -> list[TopicSegment]:
    def entry_filters(topic: str) -> tuple[str, ...]:
        if isinstance(filters, Refused):
            raise filters
        return filters

    def told(admin: Any, topic: str) -> Segments:
        return Segments(found if topic.endswith("-0") else (), EntryId(9, 0))

    monkeypatch.setattr(inspected, "segments_of", told)
    admin = cast(Admin, SimpleNamespace(entry_filters=entry_filters))
    return list(inspected.segments(cast(Client, TwoPartitions()), admin, TOPIC, offloads))


@pytest.mark.parametrize(
    ("is_open", "metadata", "offloaded", "storage", "reader"),
    [
        (True, STORED, None, Storage.OPEN, "brokers"),
        (False, STORED, None, Storage.BOOKIES, "bookies"),
        (False, STORED, "uuid", Storage.BOTH, "bookies"),
        (False, None, "uuid", Storage.OFFLOADED, "brokers"),
        (False, None, None, Storage.UNKNOWN, "brokers"),
    ],
)
def test_the_reader_is_chosen_by_where_a_segment_is_stored(
    monkeypatch: pytest.MonkeyPatch,
    is_open: bool,
    metadata: LedgerMetadata | None,
    offloaded: str | None,
    storage: Storage,
    reader: str,
) -> None:
    (one,) = described(monkeypatch, Segment(7, 4, 90, is_open, metadata, offloaded))
    assert (one.topic, one.ledger, one.entries, one.bytes) == (f"{TOPIC}-partition-0", 7, 5, 90)
    assert (one.storage, one.reader) == (storage, reader)
    assert one.bookies == (() if metadata is None else ("a:3181", "b:3181", "c:3181")), "each once, of all ensembles"


class Holding(OffloadedLedgers):
    """Secondary storage with one ledger."""

    def __init__(self) -> None:
        pass

    def holds(self, topic: str, ledger: int, uuid: str) -> bool:
        return (topic, ledger, uuid) == (f"{TOPIC}-partition-0", 7, "uuid")


@pytest.mark.parametrize("metadata", [STORED, None])
def test_secondary_storage_is_the_reader_of_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, metadata: LedgerMetadata | None
) -> None:
    found = (Segment(ledger, 4, 90, False, metadata, "uuid") for ledger in (7, 8))
    assert [one.reader for one in described(monkeypatch, *found, offloads=Holding())] == [
        "secondary storage",
        "brokers",
    ]


def on(*bookies: str) -> LedgerMetadata:
    return LedgerMetadata(7, LedgerState.CLOSED, len(bookies), 1, 1, ((0, bookies),), last_entry=4)


@pytest.mark.parametrize(
    ("metadata", "reader", "why"),
    [
        (on("bk0test"), "brokers", "No id of bk0test names a host and a port. "),
        (on("bk0test", "bk1"), "brokers", "No id of bk0test, bk1 names a host and a port. "),
        (on("bk0test", "a:3181"), "bookies", ""),
    ],
)
def test_bookies_whose_ids_name_no_address_are_not_read(
    metadata: LedgerMetadata, reader: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the source does without bookie.addresses, and as SegmentPlan warns."""
    one, offloaded = described(
        monkeypatch,
        Segment(7, 4, 90, False, metadata),
        Segment(7, 4, 90, False, metadata, "uuid"),
        offloads=Holding(),
    )
    assert (one.reader, one.why.startswith(why), "bookie.addresses" in one.why) == (reader, True, bool(why))
    assert (offloaded.reader, offloaded.why) == ("secondary storage", "")


@pytest.mark.parametrize(
    ("filters", "past"),
    [((), True), (("by-region",), False), (Refused("GET", "403", "not for this role"), True)],
)
def test_a_topic_with_entry_filters_is_read_through_its_brokers(
    filters: tuple[str, ...] | Refused, past: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (Segment(7, 4, 90, False, STORED), Segment(7, 4, 90, False, STORED, "uuid"), Segment(9, 0, 0, True, None))
    told = described(monkeypatch, *found, offloads=Holding(), filters=filters)
    assert [one.reader for one in told] == (["bookies", "secondary storage", "brokers"] if past else ["brokers"] * 3)
    assert ["by-region" in one.why for one in told] == [not past, not past, False]
