from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eos.errors import Unreachable
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Topics whose segments were asked for; where the list holds "down", the admin API does not answer."""
    topics: list[str] = []

    class Admin:
        def __enter__(self) -> Admin:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def segments_of(admin: object, topic: str) -> Segments:
        if "down" in topics:
            raise Unreachable("nobody there")
        topics.append(topic)
        return SEGMENTS

    monkeypatch.setattr(segment_path, "admin_api", lambda options: Admin())
    monkeypatch.setattr(segment_path, "segments_of", segments_of)
    return topics


def test_the_tail_costs_no_question_once_the_open_ledger_is_known(asked: list[str]) -> None:
    plan = SegmentPlan(options())
    assert plan.path(part(EntryId(9, 1), EntryId(9, 2))) is None
    assert plan.path(part(EntryId(9, 2), EntryId(9, 3))) is None
    assert asked == [TOPIC]
    assert plan.path(part(EntryId(8, 2), EntryId(9, 3))) is not None
    assert asked == [TOPIC, TOPIC]


def test_the_ranges_of_a_batch_share_one_answer_that_is_younger_than_their_ends(asked: list[str]) -> None:
    plan = SegmentPlan(options())
    for start, end in ((None, EntryId(9, 3)), (None, EntryId(8, 2)), (EntryId(8, 2), EntryId(9, 3))):
        assert plan.path(part(start, end)) is not None
    assert asked == [TOPIC]
    plan.path(part(None, EntryId(9, 4)))
    assert asked == [TOPIC] * 2, "an answer from before an end was readable proves nothing of it"
    plan.forget()
    plan.path(part(None, EntryId(9, 4)))
    assert asked == [TOPIC] * 3


def test_brokers_and_compacted_reads_ask_nothing(asked: list[str]) -> None:
    assert SegmentPlan(options("brokers")).path(part(None, EntryId(9, 3))) is None
    assert SegmentPlan(options("bookies")).path(part(None, EntryId(9, 3), compacted=True)) is None
    assert asked == []


def test_where_the_segments_are_not_known_the_brokers_are_read_and_it_is_said_once(
    asked: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    asked.append("down")
    plan = SegmentPlan(options("bookies"))
    with caplog.at_level(logging.WARNING, "eos.source"):
        assert [plan.path(part(None, EntryId(9, 3))) for _ in range(3)] == [None, None, None]
    assert [record.getMessage() for record in caplog.records] == [
        f"{TOPIC} is read through its brokers. Its segments are not known: nobody there"
    ]


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
