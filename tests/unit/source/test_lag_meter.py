"""The lag of a query for its progress, by brokers that are made up."""

from __future__ import annotations

from collections.abc import Sequence

from eos.errors import Unanswered
from eos.metrics.source_report import PartitionLag
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.entry_counts import EntryCounts
from eos.source.lag_meter import LagMeter
from eos.source.offsets import Offsets, Position
from eos.source.optional_questions import REST_S, OptionalQuestions

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
        questions = OptionalQuestions(lambda: self.now)
        counts = EntryCounts(self.ledgers if ledgers else None, questions)
        return LagMeter(counts, self.publish_time if times else None, questions)

    def _note(self, question: str) -> None:
        self.questions.append(question)
        if self.fails:
            raise Unanswered("no answer")


def at(**places: str) -> Offsets:
    return Offsets({topic: Position.parse(place) for topic, place in places.items()})


def test_only_topics_that_are_behind_are_asked_about() -> None:
    asked = Asked()
    found = asked.meter().measured(at(a="8:9", b="5:3", c="8:1"), at(a="8:9", b="8:9", c="8:2", new="8:0"))
    assert found == (
        PartitionLag(topic="b", entries=20, oldest_ms=1_004),
        PartitionLag(topic="c", entries=1, oldest_ms=1_002),
        PartitionLag(topic="new", entries=15, oldest_ms=1_000),
    )
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
    assert asked.questions[4:] == ["5:5 of a"], "what is known of a topic that was not behind is old, but for ledgers"


def test_a_question_that_fails_is_not_asked_again_for_a_while_and_fails_no_plan() -> None:
    asked = Asked()
    asked.fails = True
    meter = asked.meter()
    for _ in range(2):
        assert meter.measured(at(a="5:3"), at(a="8:9")) == (PartitionLag(topic="a", entries=10, whole=False),)
    assert len(asked.questions) == 1
    asked.fails = False
    asked.now += REST_S
    assert meter.measured(at(a="5:3"), at(a="8:9")) == (PartitionLag(topic="a", entries=20, oldest_ms=1_004),)


def test_nobody_is_asked_without_an_admin_api_or_a_limit() -> None:
    asked = Asked()
    meter = asked.meter(ledgers=False, times=False)
    assert meter.measured(at(a="5:3"), at(a="8:9")) == (PartitionLag(topic="a", entries=10, whole=False),)
    assert not asked.questions
