"""More tasks than topic partitions: ranges that are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.errors import TopicMissing
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.source.offsets import BEGINNING, Position
from eos.source.range_splitter import splitter, whole
from eos.source.ranges import Range
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at, entries


class Stored(FakeBrokers):
    """Topics whose ledgers are known."""

    def __init__(self, ledgers: Iterable[TopicLedger] = (), **topics: FakeTopic) -> None:
        super().__init__(**topics)
        self.stored = list(ledgers)
        self.asked = 0

    def ledgers(self, topic: str) -> list[TopicLedger]:
        self.asked += 1
        return self.stored

    def firsts(self, topic: str, entries: Sequence[EntryId]) -> list[EntryId | None]:
        return [self.first(topic, entry).entry for entry in entries]


def behind(start: str, end: str, topic: str = "t") -> Range:
    return Range(topic, Position.parse(start), at(end))


def texts(ranges: Iterable[Range]) -> list[str]:
    return [f"{part.start} to {part.end}" for part in ranges]


def test_a_range_within_a_ledger_is_cut_evenly_without_a_question_about_ledgers() -> None:
    brokers = Stored(t=FakeTopic(entries(5, 0, 99)))
    assert texts(splitter(brokers, 4)([behind("5:19", "5:99")])) == [
        "5:19 to 5:39", "5:39 to 5:59", "5:59 to 5:79", "5:79 to 5:99",
    ]  # fmt: skip
    assert brokers.asked == 0
    assert texts(whole([behind("5:19", "5:99")])) == ["5:19 to 5:99"]


def test_equal_shares_are_shares_of_bytes() -> None:
    ledgers = [TopicLedger(3, 100, 100), TopicLedger(5, 10, 1_000), TopicLedger(7, 0, 0), TopicLedger(9, 0, 0)]
    brokers = Stored(ledgers, t=FakeTopic(entries(3, 0, 99) + entries(5, 0, 9) + entries(9, 0, 4)))
    whole_topic = Range("t", BEGINNING, at("9:4"))
    assert texts(splitter(brokers, 4)([whole_topic])) == [
        "beginning to 5:2", "5:2 to 5:6", "5:6 to 9:0", "9:0 to 9:4",
    ]  # fmt: skip


def test_a_cut_is_made_at_the_next_message_and_none_is_empty() -> None:
    delivered = [at("5:0"), at("5:7"), at("5:9")]
    brokers = Stored(t=FakeTopic(delivered))
    assert texts(splitter(brokers, 10)([behind("pinned 5:-1", "5:9")])) == [
        "pinned 5:-1 to 5:0", "5:0 to 5:7", "5:7 to 5:9",
    ]  # fmt: skip


def test_topics_share_the_partitions_by_their_entries() -> None:
    brokers = Stored(a=FakeTopic(entries(5, 0, 89)), b=FakeTopic(entries(6, 0, 9)))
    cut = splitter(brokers, 10)([behind("pinned 5:-1", "5:89", "a"), behind("pinned 6:-1", "6:9", "b")])
    assert [part.topic for part in cut] == ["a"] * 9 + ["b"]


def test_there_are_no_more_parts_than_entries() -> None:
    brokers = Stored(t=FakeTopic(entries(5, 0, 2)))
    assert texts(splitter(brokers, 10**12)([behind("5:0", "5:2")])) == ["5:0 to 5:1", "5:1 to 5:2"]


def test_a_large_range_is_cut_without_being_asked_to() -> None:
    brokers = Stored([TopicLedger(3, 10, 150), TopicLedger(4, 0, 0)], t=FakeTopic([*entries(3, 0, 9), at("4:0")]))
    everything = [Range("t", BEGINNING, at("4:0"))]
    assert texts(splitter(brokers, 1, part_bytes=100)(everything)) == ["beginning to 3:5", "3:5 to 4:0"]
    assert splitter(brokers, 1)(everything) == everything
    assert len(splitter(brokers, 5, part_bytes=100)(everything)) == 5


def test_what_compaction_left_is_read_by_one_task() -> None:
    brokers = Stored(t=FakeTopic(entries(5, 0, 99)))
    part = Range("t", BEGINNING, at("5:99"), compacted=True)
    assert splitter(brokers, 4)([part]) == [part]
    assert brokers.asked == 0


def test_only_the_first_part_begins_where_the_range_was_seen_to_begin() -> None:
    part = Range("t", BEGINNING, at("5:3"), first=at("5:0"))
    cut = splitter(Stored(t=FakeTopic(entries(5, 0, 3))), 2)([part])
    assert [one.first for one in cut] == [at("5:0"), None]


def test_an_end_that_the_user_named_may_lie_behind_the_last_cut() -> None:
    brokers = Stored(t=FakeTopic([at("5:0"), at("5:9")]))
    part = Range("t", BEGINNING, at("5:6"), end_delivered=False)
    assert splitter(brokers, 3)([part]) == [part]


def test_the_same_range_is_cut_at_the_same_places_when_its_last_ledger_is_closed() -> None:
    topic = FakeTopic(entries(3, 0, 99) + entries(5, 0, 99))
    part = [behind("3:10", "5:40")]
    now = splitter(Stored([TopicLedger(3, 100, 700), TopicLedger(5, 0, 0)], t=topic), 5)(part)
    later = [TopicLedger(1, 9, 9), TopicLedger(3, 100, 700), TopicLedger(5, 100, 90_000), TopicLedger(7, 0, 0)]
    assert splitter(Stored(later, t=topic), 5)(part) == now
    assert len(now) == 5


def test_what_is_lost_is_left_to_the_task_that_reads_it() -> None:
    class Gone(Stored):
        def ledgers(self, topic: str) -> list[TopicLedger]:
            raise TopicMissing(f"the topic {topic} does not exist")

        def firsts(self, topic: str, entries: Sequence[EntryId]) -> list[EntryId | None]:
            return [None for _ in entries]

    part = Range("t", BEGINNING, at("5:99"))
    assert splitter(Gone(), 8)([part]) == [part]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[TopicLedger], list[EntryId], int]:
    """Ledgers with holes between their messages; at least one message in all."""
    ledgers, delivered = [], []
    for number in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, 12))
        ledgers.append(TopicLedger(2 * number, count, count * draw(st.integers(0, 50))))
        delivered += [EntryId(2 * number, entry) for entry in range(count) if draw(st.booleans())]
    if not delivered:
        ledgers.append(TopicLedger(20, 1, 1))
        delivered.append(EntryId(20, 0))
    return ledgers, delivered, draw(st.integers(1, 40))


@given(worlds())
def test_the_parts_are_the_range_whatever_the_ledgers_hold(world: tuple[list[TopicLedger], list[EntryId], int]) -> None:
    ledgers, delivered, parts = world
    brokers = Stored(ledgers, t=FakeTopic(delivered))
    cut = splitter(brokers, parts)([Range("t", BEGINNING, delivered[-1])])
    assert cut[0].start == BEGINNING
    assert cut[-1].end == delivered[-1]
    assert [part.start.entry for part in cut[1:]] == [part.end for part in cut[:-1]]
    assert all(part.start.entry < part.end and part.end in delivered for part in cut)
    assert all(part.start.delivered for part in cut[1:])
    read = [one for part in cut for one in delivered if part.start.entry < one <= part.end]
    assert read == delivered
    assert len(cut) <= parts


@pytest.mark.parametrize("entry_bytes", [1, 1_000])
def test_as_many_parts_as_wanted_where_each_entry_is_a_message(entry_bytes: int) -> None:
    ledgers = [TopicLedger(3, 40, 40 * entry_bytes), TopicLedger(5, 60, 60 * entry_bytes), TopicLedger(6, 0, 0)]
    brokers = Stored(ledgers, t=FakeTopic(entries(3, 0, 39) + entries(5, 0, 59) + entries(6, 0, 9)))
    assert len(splitter(brokers, 110)([Range("t", BEGINNING, at("6:9"))])) == 110
