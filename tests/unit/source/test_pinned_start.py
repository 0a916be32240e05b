"""What is known of a start of which the query has read nothing, once its subscription has moved by itself."""

from __future__ import annotations

import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary
from eos.source.offsets import Offsets, Position
from eos.source.stream_plan import StreamPlan
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at, entries

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
