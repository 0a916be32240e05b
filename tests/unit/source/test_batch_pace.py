"""A limit that adapts to how long batches take."""

from __future__ import annotations

import pytest

from eos.pulsar.wire.message_id import EntryId
from eos.source.batch_pace import FIRST_ENTRIES, Limits, Minimum, Pace
from eos.source.boundaries import Boundary
from eos.source.ranges import Found
from eos.source.stream_plan import StreamPlan
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, entries
from tests.unit.source.test_stream_plan import offsets


class Long(FakeBrokers):
    """A topic of very many entries."""

    def last(self, topic: str) -> EntryId:
        return EntryId(5, 10**9)

    def first(self, topic: str, entry: EntryId) -> Found:
        return Found(entry, 100)


LEAST = Limits(least_entries=10, longest_wait_s=60)
LONG = Long(t=FakeTopic())


class Query:
    """A query over one topic. A batch takes `fixed_s`, and `each_s` for each of its entries."""

    def __init__(self, brokers: FakeBrokers, fixed_s: float, each_s: float, target_s: float = 10) -> None:
        self.now = 1_000.0
        self.fixed_s = fixed_s
        self.each_s = each_s
        self.plan = StreamPlan(
            brokers,
            Boundary("earliest"),
            fail_on_data_loss=True,
            warn=print,
            pace=Pace(target_s, lambda: self.now),
        )
        self.start = offsets(t="pinned 5:-1")

    def batch(self, limits: Limits | None = None) -> tuple[int, float]:
        """Run a batch; return its entries and seconds."""
        end = self.plan.latest(self.start, limits or Limits(seconds=10))
        count = end.topics["t"].entry.entry - self.start.topics["t"].entry.entry
        took = self.fixed_s + self.each_s * count
        self.now += took
        self.start = end
        return count, took


@pytest.mark.parametrize(("fixed_s", "each_s"), [(0.0, 0.001), (0.5, 0.002), (3.0, 0.01), (0.1, 5.0)])
def test_batches_come_to_take_what_is_wanted(fixed_s: float, each_s: float) -> None:
    query = Query(LONG, fixed_s, each_s)
    assert query.batch()[0] == FIRST_ENTRIES
    for _ in range(12):
        count, took = query.batch()
    assert took == pytest.approx(10, rel=0.35)
    query.each_s *= 8
    for _ in range(6):
        count, took = query.batch()
    assert took == pytest.approx(10, rel=0.35) or count == 1


def test_one_batch_changes_the_limit_by_no_more_than_four_times() -> None:
    query = Query(LONG, 0.0, 0.000_001)
    assert [query.batch()[0] for _ in range(3)] == [100, 400, 1_600]
    query.fixed_s = 100_000
    assert [query.batch()[0] for _ in range(3)] == [6_400, 1_600, 400]


def test_a_batch_that_took_all_there_was_says_nothing() -> None:
    topic = FakeTopic(entries(5, 0, 49))
    query = Query(FakeBrokers(t=topic), 0.0, 0.001)
    assert query.batch()[0] == 50
    query.now += 3_600  # nothing came for an hour
    assert query.batch()[0] == 0
    topic.delivered += entries(5, 50, 10_000)
    assert query.batch()[0] == FIRST_ENTRIES


@pytest.mark.parametrize("limits", [Limits(entries=10, seconds=10), Limits(bytes=1_000, seconds=10)])
def test_another_limit_that_is_lower_counts_and_teaches_nothing(limits: Limits) -> None:
    query = Query(LONG, 0.0, 0.001)
    assert [query.batch(limits)[0] for _ in range(5)] == [10] * 5
    assert query.batch()[0] == FIRST_ENTRIES


class Waiting:
    """A query over two topics whose batches wait for ten entries, for a minute at most."""

    def __init__(self, **topics: FakeTopic) -> None:
        self.now = 1_000.0
        self.brokers = FakeBrokers(**topics)
        self.plan = StreamPlan(
            self.brokers,
            Boundary("earliest"),
            fail_on_data_loss=True,
            warn=print,
            minimum=Minimum(10, 60, lambda: self.now),
        )
        self.start = offsets(**dict.fromkeys(topics, "pinned 5:-1"))

    def batch(self, limits: Limits | None = LEAST) -> int:
        """Plan a batch; return how many entries it has."""
        end = self.plan.latest(self.start, limits)
        before, self.start = self.start, end
        return sum(end.topics[one].entry.entry - before.topics[one].entry.entry for one in end.topics)


def test_the_first_batch_does_not_wait_and_others_wait_for_enough_entries_of_all_topics() -> None:
    query = Waiting(a=FakeTopic(entries(5, 0, 0)), b=FakeTopic())
    assert query.batch() == 1
    query.brokers.held["a"].delivered += entries(5, 1, 5)
    query.brokers.held["b"].delivered += entries(5, 0, 3)
    assert query.batch() == 0, "nine entries are waiting"
    query.brokers.held["b"].delivered += entries(5, 4, 4)
    assert query.batch() == 10


def test_a_batch_waits_no_longer_than_is_allowed_since_the_one_before() -> None:
    query = Waiting(a=FakeTopic(entries(5, 0, 0)))
    assert query.batch() == 1
    query.now += 100
    assert query.batch() == 0, "a trigger that finds nothing is not a batch, and the wait goes on from the last one"
    query.brokers.held["a"].delivered += entries(5, 1, 1)
    assert query.batch() == 1
    query.brokers.held["a"].delivered += entries(5, 2, 2)
    query.now += 59
    assert query.batch() == 0
    query.now += 1
    assert query.batch() == 1


def test_what_lies_in_several_ledgers_counts_as_enough() -> None:
    query = Waiting(a=FakeTopic(entries(5, 0, 0)))
    assert query.batch() == 1
    query.brokers.held["a"].delivered += entries(6, 0, 0)
    end = query.plan.latest(query.start, LEAST)
    assert end == offsets(a="6:0"), "how many entries the old ledger still brings nobody knows"


def test_a_query_that_ends_at_what_is_there_does_not_wait() -> None:
    query = Waiting(a=FakeTopic(entries(5, 0, 0)))
    assert query.batch() == 1
    query.brokers.held["a"].delivered += entries(5, 1, 1)
    query.plan.stop_at_what_is_there()
    assert query.batch() == 1


def test_a_trigger_that_takes_everything_does_not_wait() -> None:
    query = Waiting(a=FakeTopic(entries(5, 0, 0)))
    assert query.batch() == 1
    query.brokers.held["a"].delivered += entries(5, 1, 1)
    assert query.batch(None) == 1
