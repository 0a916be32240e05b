"""The lag of a query for its progress, by brokers that are made up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eos.errors import Unanswered
from eos.metrics.partition_lag import PartitionLag
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.lag_meter import REST_S, LagMeter, entries_between
from eos.source.offsets import BEGINNING, Offsets, Position

LEDGERS = [TopicLedger(5, 10, 0), TopicLedger(7, 4, 0), TopicLedger(8, 0, 0)]
"""The broker says 0 entries of the ledger that it writes to."""


class Asked:
    """Brokers that remember the questions, and a clock."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.fails = False
        self.now = 100.0

    def ledgers(self, topic: str) -> Sequence[TopicLedger]:
        self._note(f"ledgers of {topic}")
        return LEDGERS

    def publish_time(self, topic: str, entry: EntryId) -> int:
        self._note(f"{entry} of {topic}")
        return 1_000 + entry.entry

    def meter(self, *, ledgers: bool = True, times: bool = True) -> LagMeter:
        return LagMeter(self.ledgers if ledgers else None, self.publish_time if times else None, lambda: self.now)

    def _note(self, question: str) -> None:
        self.questions.append(question)
        if self.fails:
            raise Unanswered("no answer")


def at(**places: str) -> Offsets:
    return Offsets({topic: Position.parse(place) for topic, place in places.items()})


@pytest.mark.parametrize(
    ("end", "last", "ledgers", "entries", "whole"),
    [
        (EntryId(8, 3), EntryId(8, 9), (), 6, True),
        (EntryId(8, -1), EntryId(8, 9), (), 10, True),
        (EntryId(5, 3), EntryId(8, 9), LEDGERS, 6 + 4 + 10, True),
        (EntryId(5, -1), EntryId(7, 0), LEDGERS, 10 + 1, True),
        (BEGINNING.entry, EntryId(8, 9), LEDGERS, 10 + 4 + 10, True),
        (EntryId(3, 77), EntryId(8, 9), LEDGERS, 10 + 4 + 10, True),
        (EntryId(3, 77), EntryId(8, 9), LEDGERS[2:], 10, True),
        (EntryId(5, 3), EntryId(8, 9), (), 10, False),
    ],
)
def test_entries_are_counted_over_ledgers(
    end: EntryId, last: EntryId, ledgers: Sequence[TopicLedger], entries: int, whole: bool
) -> None:
    assert entries_between(end, last, ledgers) == (entries, whole)


def test_only_topics_that_are_behind_are_asked_about() -> None:
    asked = Asked()
    found = asked.meter().measured(at(a="8:9", b="5:3", c="8:1"), at(a="8:9", b="8:9", c="8:2", new="8:0"))
    assert found == [
        PartitionLag(topic="b", entries=20, oldest_ms=1_004),
        PartitionLag(topic="c", entries=1, oldest_ms=1_002),
        PartitionLag(topic="new", entries=15, oldest_ms=1_000),
    ]
    assert sorted(asked.questions) == ["-1:0 of new", "5:4 of b", "8:2 of c", "ledgers of b", "ledgers of new"]


def test_a_place_is_looked_up_once_and_ledgers_when_a_new_one_begins() -> None:
    """Spark plans again every few milliseconds where nothing new comes."""
    asked = Asked()
    meter = asked.meter()
    for _ in range(3):
        meter.measured(at(a="5:3"), at(a="8:9"))
    assert asked.questions == ["ledgers of a", "5:4 of a"]
    meter.measured(at(a="5:4"), at(a="8:10"))
    meter.measured(at(a="5:4"), at(a="9:0"))
    assert asked.questions[2:] == ["5:5 of a", "ledgers of a"]
    meter.measured(at(a="9:0"), at(a="9:0"))
    meter.measured(at(a="5:4"), at(a="9:0"))
    assert asked.questions[4:] == ["ledgers of a", "5:5 of a"], "what is known of a topic that was not behind is old"


def test_a_question_that_fails_is_not_asked_again_for_a_while_and_fails_no_plan() -> None:
    asked = Asked()
    asked.fails = True
    meter = asked.meter()
    for _ in range(2):
        assert meter.measured(at(a="5:3"), at(a="8:9")) == [PartitionLag(topic="a", entries=10, whole=False)]
    assert len(asked.questions) == 1
    asked.fails = False
    asked.now += REST_S
    assert meter.measured(at(a="5:3"), at(a="8:9")) == [PartitionLag(topic="a", entries=20, oldest_ms=1_004)]


def test_nobody_is_asked_without_an_admin_api_or_a_limit() -> None:
    asked = Asked()
    meter = asked.meter(ledgers=False, times=False)
    assert meter.measured(at(a="5:3"), at(a="8:9")) == [PartitionLag(topic="a", entries=10, whole=False)]
    assert not asked.questions
