"""What is known of a start of which the query has read nothing, once its subscription has moved by itself."""

from __future__ import annotations

from contextlib import suppress

import pytest

from eos.errors import InvalidInput, Unanswered
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary
from eos.source.errors import DataLost
from eos.source.offsets import BEGINNING, Offsets, Position
from eos.source.ranges import Range
from eos.source.stream_plan import StreamPlan
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at, entries
from tests.unit.source.memory_cluster import Job, MemoryCluster, StoredTopic, gone_with_messages
from tests.unit.source.test_stream_plan import Plan, offsets

START = Offsets({"t": Position(at("8:99"), delivered=False)})


class Idle:
    """A running query with `latest` that has read nothing yet."""

    def __init__(self, *, fail: bool = True) -> None:
        self.warnings: list[str] = []
        self.brokers = FakeBrokers(t=FakeTopic(entries(8, 90, 99), stands=at("8:99")))
        self.plan = StreamPlan(self.brokers, Boundary("latest"), fail_on_data_loss=fail, warn=self.warnings.append)
        assert self.plan.latest(START, None) == START

    def ledger_has_expired(self, *left: EntryId) -> None:
        """Close ledger 8, and expire what is unread in it: the subscription goes past it, and retention keeps it."""
        topic = self.brokers.held["t"]
        topic.delivered += [*entries(8, 100, 199), *left]
        topic.stands, topic.place = at("9:-1"), at("8:99")

    def ledger_is_gone(self, *left: EntryId) -> None:
        """Close and delete ledger 8: the broker moves the subscription before the next one."""
        topic = self.brokers.held["t"]
        topic.delivered, topic.stands, topic.place = list(left), at("9:-1"), at("9:-1")


@pytest.mark.parametrize(
    ("stands", "place", "made", "words"),
    [
        ("5:-1", None, False, None),
        ("9:-1", None, False, None),
        ("5:-1", "5:8", True, None),
        ("5:9", "5:8", False, None),
        ("3:-1", "5:2", False, "another cluster"),
        ("9:-1", "9:-1", True, "subscription was gone"),
        ("9:-1", "9:-1", None, "subscription was gone"),
        ("9:4", "9:-1", False, "subscription was moved to 9:4"),
    ],
)
def test_a_pinned_start_must_still_be_there_unless_the_subscription_stands_at_it(
    stands: str, place: str | None, made: bool | None, words: str | None
) -> None:
    brokers = FakeBrokers(t=FakeTopic(entries(9, 0, 6), stands=at(stands), place=at(place) if place else None))
    brokers.made = ["t"] if made else []
    brokers.gone_with_start = ["t"] if made is None else []
    start = offsets(t="pinned 5:-1" if stands == "5:-1" and not made else "pinned 5:8")
    if words is None:
        assert Plan(brokers).latest(start, None) == offsets(t="9:6")
        assert brokers.unmade == []
        return
    end = offsets(t="9:6")
    with pytest.raises(InvalidInput, match=words):
        Plan(brokers).latest(start, None)
    with pytest.raises(InvalidInput, match=words):
        Plan(brokers).ranges(start, end)
    assert brokers.unmade == (["t"] * 2 if made else []), "a subscription that was made would hide the loss"
    assert brokers.remade == []
    careless = Plan(brokers, fail=False)
    assert careless.latest(start, None) == end
    assert careless.ranges(start, end) == [Range("t", BEGINNING, at("9:6"))]
    assert words in careless.warnings[0]
    assert bool(brokers.remade) == (made is None), "once the loss is accepted"


def test_a_subscription_that_moved_past_a_ledger_that_is_gone_is_spoken_of_once() -> None:
    query = Idle()
    query.ledger_is_gone(at("9:0"))
    for _ in range(3):
        assert query.plan.latest(START, None) == Offsets({"t": Position(at("9:0"))})
    (warning,) = query.warnings
    assert "begin after 8:99 on t. Its subscription stands at 9:-1 now" in warning
    assert "messages written after 8:99 are lost" in warning


def test_a_subscription_that_moved_past_a_ledger_that_is_stored_is_not_spoken_of() -> None:
    query = Idle()
    query.ledger_is_gone()
    query.brokers.held["t"].place = at("8:99")
    assert query.plan.latest(START, None) == START
    assert query.warnings == []


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize("when", ["between plan and read", "between two looks"])
def test_messages_that_nothing_kept_since_a_look_found_them_are_a_loss(when: str, fail: bool) -> None:
    """The first look saw that the start was stored. That held for that moment only."""
    query = Idle(fail=fail)
    query.ledger_has_expired(at("9:0"))
    end = query.plan.latest(START, None)
    assert end == Offsets({"t": Position(at("9:0"))})
    assert query.warnings == []
    query.ledger_is_gone(at("9:0"))

    def go_on() -> None:
        if when == "between plan and read":
            query.plan.ranges(START, end)
        else:
            query.plan.latest(START, None)

    if fail:
        with pytest.raises(InvalidInput, match=r"data of t was lost.*after 8:99.*moved to 9:-1"):
            go_on()
        return
    go_on()
    assert "data of t was lost" in query.warnings[0]


def test_a_topic_without_news_is_asked_about_once_where_its_subscription_has_moved() -> None:
    query = Idle()
    topic = query.brokers.held["t"]
    topic.stands, topic.place = at("9:-1"), at("8:99")
    for _ in range(3):
        assert query.plan.latest(START, None) == START
    assert query.brokers.places == ["t"]


@pytest.mark.parametrize("seen_by", ["progress", "available now", "plan"])
def test_messages_that_were_seen_behind_the_start_and_are_gone_are_a_loss(seen_by: str) -> None:
    for fail in (True, False):
        query = Idle(fail=fail)
        query.brokers.held["t"].delivered += entries(8, 100, 199)
        if seen_by == "progress":
            query.plan.newest()
        elif seen_by == "plan":
            query.plan.latest(START, None)
        else:
            query.plan.stop_at_what_is_there()
        query.ledger_is_gone(at("9:0"))
        if fail:
            with pytest.raises(InvalidInput, match=r"data of t was lost.*after 8:99.*moved to 9:-1"):
                query.plan.latest(START, None)
        else:
            query.plan.latest(START, None)
            assert "data of t was lost" in query.warnings[0]


@pytest.mark.parametrize("seen", [False, True])
def test_a_partition_that_is_gone_is_a_loss_where_a_message_was_seen_in_it(seen: bool) -> None:
    query = Idle()
    if seen:
        query.brokers.held["t"].delivered += entries(8, 100, 199)
        query.plan.newest()
    query.brokers.held.clear()
    query.brokers.deleted = query.brokers.removed = ["t"]
    if seen:
        with pytest.raises(InvalidInput, match=r"data of t was lost: .*read it up to 8:99, and 8:199 was there"):
            query.plan.latest(START, None)
        return
    query.plan.latest(START, None)
    (warning,) = query.warnings
    assert "partition t is gone" in warning
    assert "If somebody has deleted it, the messages that were written to it since the query began are lost" in warning


@pytest.mark.parametrize("news", [True, False])
def test_a_subscription_that_is_lost_after_its_move_was_spoken_of_is_a_loss(news: bool) -> None:
    """It had been moved to the place where the topic begins now."""
    query = Idle()
    topic = query.brokers.held["t"]
    if news:
        query.ledger_is_gone(at("9:0"))
    else:
        topic.stands, topic.place = at("9:-1"), at("8:99")
    query.plan.latest(START, None)
    assert len(query.warnings) == news
    topic.place = at("9:-1")
    query.brokers.gone_with_start = ["t"]
    with pytest.raises(InvalidInput, match="subscription was gone"):
        query.plan.latest(START, None)


class Killed(BaseException):
    """The driver's end."""


BREAKS: dict[str, BaseException] = {"killed": Killed(), "no answer": Unanswered("no answer")}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", BREAKS.values(), ids=BREAKS)
@pytest.mark.parametrize("step", ["position on", "subscribe to", "answer to subscribe to", "last of", "delete on"])
@pytest.mark.parametrize("start", ["earliest", "latest"])
@pytest.mark.parametrize("running", [False, True])
def test_a_lost_subscription_whose_start_is_gone_too_is_a_loss_however_a_run_ends_that_finds_it(
    running: bool, start: str, step: str, error: BaseException
) -> None:
    """Nothing but the missing subscription shows the loss. So it must not be made again until the loss is accepted."""
    topic = StoredTopic({5: 10, 6: 10})
    job = Job(MemoryCluster(t=topic), {"topic": "t", "startingOffsets": start})
    job.start().trigger(dies=start == "earliest")
    topic.write(8, 5)
    gone_with_messages(topic)
    if not running:
        job.start()
    job.cluster.fails = {f"{step} persistent://public/default/t": [error] * 9}
    with pytest.raises((DataLost, Killed, Unanswered)):
        job.drain()
    assert topic.subscriptions == {}
    job.cluster.fails = {}
    for _ in range(2):
        with pytest.raises(DataLost, match="subscription was gone"):
            job.start().drain()
    with suppress(DataLost):  # the end of batch 0 is gone too, which the task finds
        job.start(failOnDataLoss="false").drain()
    assert "subscription was gone" in job.told[0]
    assert topic.subscriptions["job"] <= at("8:3"), "it keeps what is left"


def test_the_newest_message_is_looked_for_without_a_lost_subscription_made_again() -> None:
    """Spark asks for it after each plan, and the next plan tells the loss."""
    topic = StoredTopic({5: 10, 6: 10})
    job = Job(MemoryCluster(t=topic), {"topic": "t"}).start()
    job.trigger()
    topic.write(8, 5)
    gone_with_messages(topic)
    assert job.plan.newest().topics == offsets(**{"persistent://public/default/t": "8:4"}).topics
    assert topic.subscriptions == {}
    with pytest.raises(DataLost, match="subscription was gone"):
        job.trigger()


LATER_LEDGER = [f"t@7:{entry}" for entry in range(5)]


@pytest.mark.parametrize("options", [{}, {"failOnDataLoss": "false"}, {"resetSubscription": "true"}])
@pytest.mark.parametrize("place", ["7:0", "7:-1"])
def test_a_query_begins_with_the_first_entry_of_a_ledger_while_older_ones_are_stored(
    place: str, options: dict[str, str]
) -> None:
    """A broker puts no cursor at 7:-1, but after the entry before, and keeps nothing of that for the query."""
    topic = StoredTopic({5: 10, 6: 10, 7: 5})
    job = Job(MemoryCluster(t=topic), {"topic": "t", "startingOffsets": f'{{"t": "{place}"}}'} | options)
    for _ in range(2):  # the driver dies, and the query begins again
        job.start().plan.latest(job.plan.first(), None)
        assert topic.subscriptions == {"job": at("6:9")}
    assert job.start().drain() == LATER_LEDGER
    assert (job.told, job.brokers.lose.count) == ([], 0)


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("now", [None, "5:-1", "9:-1"])
@pytest.mark.parametrize("older", ["stored", "deleted"])
def test_a_query_goes_on_where_a_broker_had_moved_its_subscription_before_a_ledger(
    older: str, now: str | None, fail: str
) -> None:
    """Before the ledger was written, and then the subscription is gone, moved back, or moved on by the broker."""
    topic = StoredTopic({5: 10, 6: 10, 7: 0})
    topic.subscriptions["job"] = at("7:-1")
    job = Job(MemoryCluster(t=topic), {"topic": "t", "failOnDataLoss": fail})
    assert job.start().drain() == []
    topic.write(7, 5)
    topic.subscriptions = {} if now is None else {"job": at(now)}
    if older == "deleted":
        topic.trim()
        topic.ledgers = {7: 5}
    if now == "9:-1":
        topic.write(9, 0)
    job.start().plan.latest(job.end(0), None)
    assert topic.subscriptions.keys() == {"job"}, "it keeps what is to be read"
    assert job.start().drain() == LATER_LEDGER
    assert job.told == []


@pytest.mark.parametrize("there", [{5: 10, 6: 10}, {5: 10, 6: 10, 9: 10}], ids=["the last", "one in between"])
@pytest.mark.parametrize("now", [None, "5:-1"])
def test_a_ledger_that_was_never_there_is_another_cluster_s(now: str | None, there: dict[int, int]) -> None:
    topic = StoredTopic({5: 10, 6: 10, 7: 0}, {"job": at("7:-1")})
    job = Job(MemoryCluster(t=topic), {"topic": "t"})
    assert job.start().drain() == []
    topic.ledgers = there
    topic.subscriptions = {} if now is None else {"job": at(now)}
    for _ in range(2):
        with pytest.raises(DataLost, match=r"begin after 7:-1 .* before that place is 6:9\. This is another cluster"):
            job.start().drain()
