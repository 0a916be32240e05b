from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eos.bookkeeper import Digest, LedgerMetadata, LedgerState
from eos.errors import EosError, Refused, Unreachable
from eos.history.reader import HistoryReader, HistoryUnavailable
from eos.history.segments import Segment, Segments
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source import segment_path
from eos.source.offsets import BEGINNING, Position
from eos.source.options import SourceOptions, parse_options
from eos.source.ranges import Range
from eos.source.segment_path import SegmentPath, SegmentPlan, path_of, read_stored

TOPIC = "persistent://public/default/t"
SEGMENTS = Segments(
    (
        Segment(3, 9, 0, False, None),
        Segment(5, -1, 0, False, None),
        Segment(8, 4, 0, False, None),
        Segment(9, 6, 0, True, None),
    ),
    EntryId(9, 6),
)


def part(start: EntryId | None, end: EntryId, **more: Any) -> Range:
    return Range(TOPIC, BEGINNING if start is None else Position(start), end, **more)


def options(read_from: str = "auto") -> SourceOptions:
    given = {"service.url": "pulsar://h:1", "topic": "t", "admin.url": "http://h:2", "read.from": read_from}
    return parse_options(given, "batch")


@pytest.mark.parametrize(
    ("start", "end", "read_from", "expected"),
    [
        (None, EntryId(9, 3), "auto", EntryId(8, 4)),
        (None, EntryId(9, 3), "bookies", EntryId(9, 3)),
        (None, EntryId(8, 2), "auto", EntryId(8, 2)),
        (EntryId(8, 2), EntryId(9, 3), "auto", EntryId(8, 4)),
        (EntryId(8, 4), EntryId(9, 3), "auto", None),
        (EntryId(8, 4), EntryId(9, 3), "bookies", EntryId(9, 3)),
        (EntryId(9, 1), EntryId(9, 3), "auto", None),
    ],
)
def test_closed_segments_are_read_past_the_brokers_and_the_open_one_where_that_is_asked_for(
    start: EntryId | None, end: EntryId, read_from: str, expected: EntryId | None
) -> None:
    path = path_of(part(start, end), SEGMENTS, read_from)
    assert (None if path is None else path.end) == expected
    if path is not None:
        assert path.segments.segments[0].ledger == (3 if start is None else start.ledger)
        assert path.segments.last_confirmed == EntryId(9, 6)


def test_a_range_of_a_topic_of_thousands_of_segments_looks_at_few_of_them() -> None:
    """A read of 500 GB in ledgers of 50,000 entries has some 5,000 of both, and was planned for half a minute."""

    class Counted(tuple[Segment, ...]):
        looks = 0

        def __getitem__(self, key: Any) -> Any:
            Counted.looks += 1
            return super().__getitem__(key)

        def __iter__(self) -> Any:
            pytest.fail("all of them were looked at")

    count = 5_000
    every = Counted(Segment(number, 49_999, 1, number == count - 1, None) for number in range(count))
    segments = Segments(every, EntryId(count - 1, 49_999))
    for number in range(count - 1):
        path = path_of(part(EntryId(number, 7), EntryId(number + 1, 5)), segments, "auto")
        assert path is not None
        assert [one.ledger for one in path.segments.segments] == [*range(number, min(number + 34, count))]
    assert Counted.looks < count * 50


class Asked(list[str]):
    """Topics whose segments were asked for, and what the admin API tells of them; it fails where that is an error."""

    segments: Segments | EosError = SEGMENTS
    filters: tuple[str, ...] | EosError = ()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    topics = Asked()

    class Admin:
        def __enter__(self) -> Admin:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def entry_filters(self, topic: str) -> tuple[str, ...]:
            if isinstance(topics.filters, EosError):
                raise topics.filters
            return topics.filters

    def segments_of(admin: object, topic: str) -> Segments:
        topics.append(topic)
        if isinstance(topics.segments, EosError):
            raise topics.segments
        return topics.segments

    monkeypatch.setattr(segment_path, "admin_api", lambda options: Admin())
    monkeypatch.setattr(segment_path, "segments_of", segments_of)
    return topics


def test_the_tail_costs_no_question_once_the_open_ledger_is_known(asked: Asked) -> None:
    plan = SegmentPlan(options())
    assert plan.path(part(EntryId(9, 1), EntryId(9, 2))) is None
    assert plan.path(part(EntryId(9, 2), EntryId(9, 3))) is None
    assert asked == [TOPIC]
    assert plan.path(part(EntryId(8, 2), EntryId(9, 3))) is not None
    assert asked == [TOPIC, TOPIC]


def test_the_ranges_of_a_batch_share_one_answer_that_is_younger_than_their_ends(asked: Asked) -> None:
    plan = SegmentPlan(options())
    for start, end in ((None, EntryId(9, 3)), (None, EntryId(8, 2)), (EntryId(8, 2), EntryId(9, 3))):
        assert plan.path(part(start, end)) is not None
    assert asked == [TOPIC]
    plan.path(part(None, EntryId(9, 4)))
    assert asked == [TOPIC] * 2, "an answer from before an end was readable proves nothing of it"
    plan.paths([])
    plan.path(part(None, EntryId(9, 4)))
    assert asked == [TOPIC] * 3, "a batch has segments of its own"


def test_a_topic_that_is_cut_into_many_parts_is_asked_of_once_and_each_part_carries_few_segments(asked: Asked) -> None:
    ledgers = 400
    segments = tuple(Segment(ledger, 9, 100, ledger == ledgers - 1, None) for ledger in range(ledgers))
    asked.segments = Segments(segments, EntryId(ledgers - 1, 9))
    parts = [part(EntryId(ledger - 1, 9), EntryId(ledger, 9)) for ledger in range(1, ledgers)]
    paths = SegmentPlan(options("bookies")).paths(parts)
    assert asked == [TOPIC]
    assert [None if path is None else path.end for path in paths] == [one.end for one in parts]
    assert max(len(path.segments.segments) for path in paths if path is not None) < 40
    asked.segments = Unreachable("nobody there")
    assert SegmentPlan(options("bookies")).paths(parts) == [None] * len(parts)
    assert len(asked) == 2, "an admin API that is down is not waited for by each part"


@pytest.mark.parametrize(
    ("bookies", "given", "offloaded", "known", "said"),
    [
        (("bk1", "bk2"), "", None, False, True),
        (("bk1", "10.0.0.2:3181"), "", None, True, False),
        (("bk1", "bk2"), "bk2=10.0.0.2:3181", None, True, False),
        (("bk1", "bk2"), "bk3=10.0.0.2:3181", None, False, True),
        (("bk1", "bk2"), "", "uuid", False, False),
    ],
)
def test_bookies_whose_address_nobody_knows_are_said_once_in_the_plan_and_no_task_waits_for_them(
    asked: Asked,
    caplog: pytest.LogCaptureFixture,
    bookies: tuple[str, ...],
    given: str,
    offloaded: str | None,
    known: bool,
    said: bool,
) -> None:
    """A reader asks no bookie for a segment without metadata. The ledger that is written to is the brokers' anyway."""
    metadata = LedgerMetadata(3, LedgerState.CLOSED, 2, 2, 2, ((0, bookies),), Digest.CRC32C, 9, 900)
    closed, written_to = Segment(3, 9, 900, False, metadata, offloaded), Segment(4, 5, 0, True, metadata)
    asked.segments = Segments((closed, written_to), EntryId(4, 5))
    told = {"service.url": "pulsar://h:1", "topic": "t", "admin.url": "http://h:2", "read.from": "auto"}
    told |= {"bookie.addresses": given} if given else {}
    told |= {"offload.url": "file:///tmp/offloaded"} if offloaded else {}
    plan = SegmentPlan(parse_options(told, "batch"))
    for path in plan.paths([part(None, EntryId(3, 4)), part(EntryId(3, 4), EntryId(4, 2))]):
        assert path is not None
        assert [one.metadata is not None for one in path.segments.segments] == [known] * 2
    words = "ledger 3 of persistent://public/default/t lies on bk1, bk2, and no such id names a host and a port."
    assert [words in one for one in caplog.messages] == [True] * said


def test_brokers_and_compacted_reads_ask_nothing(asked: Asked) -> None:
    assert SegmentPlan(options("brokers")).path(part(None, EntryId(9, 3))) is None
    assert SegmentPlan(options("bookies")).path(part(None, EntryId(9, 3), compacted=True)) is None
    assert asked == []


@pytest.mark.parametrize(
    ("segments", "filters", "words"),
    [
        (Unreachable("nobody there"), (), "Its segments are not known: nobody there"),
        (SEGMENTS, Unreachable("nobody there"), "Its segments are not known: nobody there"),
        (SEGMENTS, ("colour", "size"), f"The brokers apply the entry filters colour, size to {TOPIC}. They leave out "),
        (replace(SEGMENTS, last_confirmed=EntryId(9, 2)), (), "The admin API says that it ends with 9:2, before 9:3"),
    ],
    ids=["no answer", "no answer about filters", "entry filters", "a broker that has lost the topic"],
)
def test_where_segments_can_tell_nothing_the_brokers_are_read_and_it_is_said_once(
    asked: Asked,
    caplog: pytest.LogCaptureFixture,
    segments: Segments | EosError,
    filters: tuple[str, ...] | EosError,
    words: str,
) -> None:
    asked.segments, asked.filters = segments, filters
    plan = SegmentPlan(options("bookies"))
    with caplog.at_level(logging.WARNING, "eos.source"):
        assert [plan.path(part(None, EntryId(9, 3))) for _ in range(3)] == [None, None, None]
        assert plan.paths([part(None, EntryId(9, 3))] * 2) == [None, None]
    (told,) = caplog.messages
    assert told.startswith(f"{TOPIC} is read through its brokers. {words}")


@pytest.mark.parametrize("code", ["401", "403"])
def test_a_role_that_may_not_see_the_policies_reads_bookies_all_the_same(asked: Asked, code: str) -> None:
    asked.filters = Refused("GET", code, "not for you")
    assert SegmentPlan(options("bookies")).path(part(None, EntryId(9, 3))) is not None
    asked.filters = Refused("GET", "500", "broken")
    assert SegmentPlan(options("bookies")).path(part(None, EntryId(9, 3))) is None


def entries_until_it_fails(*ids: EntryId) -> Any:
    def read(self: object, start: EntryId, end: EntryId) -> Iterator[Entry]:
        for one in ids:
            yield Entry(one, MessageMetadata(), b"", 1)
        raise HistoryUnavailable("no bookie")

    return read


def test_what_came_before_a_failure_stays_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(HistoryReader, "read", entries_until_it_fails(EntryId(3, 0), EntryId(3, 2)))
    path = SegmentPath(SEGMENTS, EntryId(8, 4))
    with caplog.at_level(logging.WARNING, "eos.source"):
        came = [entry.id for entry in read_stored(part(None, EntryId(9, 3)), path, options())]
    assert came == [EntryId(3, 0), EntryId(3, 2)]
    assert "is read through its brokers: no bookie" in "\n".join(caplog.messages)


def test_a_range_that_begins_with_another_message_than_was_planned_is_left_to_the_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HistoryReader, "read", entries_until_it_fails(EntryId(3, 1)))
    planned = replace(part(None, EntryId(9, 3)), first=EntryId(3, 0))
    assert list(read_stored(planned, SegmentPath(SEGMENTS, EntryId(8, 4)), options())) == []
