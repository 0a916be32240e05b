"""The entries of a batch, by where its tasks are to read them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eos.bookkeeper import LedgerMetadata
from eos.history.segments import Segment, Segments
from eos.metrics.source_report import PlannedEntries
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.entry_counts import EntryCounts
from eos.source.offsets import Offsets, Position
from eos.source.optional_questions import OptionalQuestions
from eos.source.planned_reads import PlannedReads
from eos.source.ranges import Range
from eos.source.segment_path import SegmentPath, path_of

STORED = LedgerMetadata.__new__(LedgerMetadata)  # what it says of the bookies does not count here
SEGMENTS = Segments(
    (
        Segment(3, 9, 0, False, STORED, "uuid"),
        Segment(5, -1, 0, False, STORED),
        Segment(8, 4, 0, False, STORED),
        Segment(9, 6, 0, True, STORED),
    ),
    EntryId(9, 6),
)


def at(**places: str) -> Offsets:
    return Offsets({topic: Position.parse(place) for topic, place in places.items()})


def reads(
    *, read_from: str = "brokers", segments: Segments = SEGMENTS, offloads: bool = True, ledgers: bool = True
) -> PlannedReads:
    def known(topic: str) -> Sequence[TopicLedger]:
        return [TopicLedger(one.ledger, one.last + 1, 0) for one in segments.segments]

    def path(part: Range) -> SegmentPath | None:
        return None if read_from == "brokers" else path_of(part, segments, read_from)

    counts = EntryCounts(known if ledgers else None, OptionalQuestions(lambda: 0.0))
    return PlannedReads(counts, path, reads_offloaded=offloads)


def of(brokers: int = 0, bookies: int = 0, offloaded: int = 0) -> tuple[PlannedEntries, ...]:
    counted = (("brokers", brokers), ("bookies", bookies), ("offloaded", offloaded))
    return tuple(PlannedEntries(reader=one, entries=entries) for one, entries in counted if entries)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("start", "end", "read_from", "planned"),
    [
        ("beginning", "9:3", "brokers", of(brokers=10 + 5 + 4)),
        ("beginning", "9:3", "auto", of(brokers=4, bookies=5, offloaded=10)),
        ("beginning", "9:3", "bookies", of(bookies=5 + 4, offloaded=10)),
        ("pinned 3:7", "8:2", "auto", of(bookies=3, offloaded=2)),
        ("8:2", "8:4", "auto", of(bookies=2)),
        ("9:0", "9:3", "auto", of(brokers=3)),
        ("9:3", "9:3", "auto", ()),
        ("9:3", "9:1", "auto", ()),
    ],
)
def test_entries_count_for_what_reads_them(
    start: str, end: str, read_from: str, planned: tuple[PlannedEntries, ...]
) -> None:
    assert reads(read_from=read_from).measured(at(a=start), at(a=end)) == planned


def test_an_offloaded_ledger_that_bookies_still_have_is_read_there_where_the_source_reads_no_storage() -> None:
    found = reads(read_from="auto", offloads=False).measured(at(a="beginning"), at(a="8:4"))
    assert found == of(bookies=15)


def test_a_ledger_that_nobody_but_the_brokers_can_read_is_theirs_with_all_after_it() -> None:
    gone = Segments((Segment(3, 9, 0, False, None, "uuid"), *SEGMENTS.segments[1:]), EntryId(9, 6))
    found = reads(read_from="auto", segments=gone, offloads=False).measured(at(a="3:1"), at(a="9:3"))
    assert found == of(brokers=8 + 5 + 4)


def test_all_topics_of_a_batch_count_but_not_one_that_it_only_pins() -> None:
    found = reads().measured(at(a="8:1", b="9:0"), at(a="8:4", b="9:2", fresh="9:6", c="pinned 9:6"))
    assert found == of(brokers=3 + 2)


def test_the_first_batch_begins_where_it_was_planned_to() -> None:
    end = Offsets(at(a="9:3").topics, at(a="pinned 9:0").topics)
    assert reads().measured(at(a="pinned 8:4"), end) == of(brokers=3)


def test_a_count_that_may_be_too_low_says_so() -> None:
    found = reads(ledgers=False).measured(at(a="8:1", b="9:0"), at(a="9:4", b="9:2"))
    assert found == (PlannedEntries(reader="brokers", entries=5 + 2, whole=False),)
