"""Where a new query begins whose subscription was there before."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos.errors import InvalidInput, TopicMissing, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary
from eos.source.errors import DataLost, Losses
from eos.source.options import parse_options
from eos.source.ranges import Found
from eos.source.stream_plan import StreamPlan
from eos.source.subscriptions import Subscriptions
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at, entries
from tests.unit.source.fake_subscription import FakeSubscription

TOPIC = "persistent://public/default/t"


@dataclass
class Cluster:
    """A topic with a subscription that stands at 5:2, and messages up to 5:9."""

    lost: bool = False
    lose: Losses = field(default_factory=lambda: Losses(fail=True))
    moved: list[EntryId] = field(default_factory=list)

    def subscription(self, *_: Any, **__: Any) -> Cluster:
        return self

    def move_subscription(self, topic: str, name: str, to: EntryId) -> bool:
        self.moved.append(to)
        return True

    def made(self) -> bool:
        return False

    def last_message_id(self) -> tuple[EntryId, EntryId]:
        stands = EntryId(self.moved[-1].ledger, self.moved[-1].entry - 1) if self.moved else at("5:2")
        return at("5:9"), stands

    def close(self) -> None:
        pass

    def last(self, topic: str) -> EntryId:
        return at("5:9")

    def sought(self, topic: str, where: object) -> EntryId:
        return at("5:-1")

    def first(self, topic: str, entry: EntryId) -> Found:
        if self.lost:
            raise DataLost("data of t was lost: nothing is left")
        return Found(entry, 1)


def subscriptions(cluster: Cluster, **options: str) -> tuple[Subscriptions, Any]:
    given = {"service.url": "pulsar://h:1", "topic": "t", "subscription": "job"} | options
    parsed = parse_options(given, "stream")
    cluster.lose = Losses(parsed.fail_on_data_loss)
    return Subscriptions(cast(Client, cluster), parsed, cast(Any, cluster)), parsed.start


LATEST = ["latest", '{"t": "latest"}']


@pytest.mark.parametrize("where", LATEST)
def test_an_explicit_latest_is_refused_once_the_first_batch_is_planned(where: str) -> None:
    made, start = subscriptions(Cluster(), startingOffsets=where)
    pinned = made.pin(TOPIC, start, new_query=True)
    assert pinned == at("5:2"), "Spark also asks where batch 0 was planned before a crash"
    with pytest.raises(InvalidInput, match=r"begins after 5:9 .* stands at 5:2.*another sub.*reset.*Leave startingOff"):
        made.begin(TOPIC, start, pinned)


def test_the_default_goes_on_where_the_subscription_stands_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    made, start = subscriptions(Cluster())
    with caplog.at_level(logging.WARNING):
        assert made.begin(TOPIC, start, made.pin(TOPIC, start, new_query=True)) == at("5:2")
    assert "exists already" in caplog.messages[0]


@pytest.mark.parametrize("where", LATEST)
def test_a_subscription_is_reset_once_and_when_the_first_batch_is_planned(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    made, start = subscriptions(cluster, startingOffsets=where, resetSubscription="true")
    pinned = made.pin(TOPIC, start, new_query=True)
    assert cluster.moved == []
    for _ in range(2):
        assert made.begin(TOPIC, start, pinned) == at("5:9")
    assert cluster.moved == [at("5:10")]
    assert "has moved" in caplog.messages[0]
    assert made.pin(TOPIC, start, new_query=False) == at("5:9")


def test_a_loss_at_the_start_is_as_the_option_says(caplog: pytest.LogCaptureFixture) -> None:
    made, start = subscriptions(Cluster(lost=True), startingOffsets="earliest")
    with pytest.raises(DataLost, match="nothing is left"):
        made.pin(TOPIC, start, new_query=True)
    cluster = Cluster(lost=True)
    made, start = subscriptions(cluster, startingOffsets="earliest", failOnDataLoss="false")
    assert made.pin(TOPIC, start, new_query=True) == at("5:2")
    assert "nothing is left" in caplog.text
    assert cluster.lose.count == 1


def test_what_a_refused_query_has_made_is_deleted_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    topics = {
        "new": FakeSubscription(new=True),
        "missing now": FakeSubscription(new=True, deleted=TopicMissing("it is gone")),
        "found": FakeSubscription(new=False),
        "out of reach": FakeSubscription(new=True, deleted=Unanswered("no answer")),
        "new, too": FakeSubscription(new=True),
    }
    made, start = subscriptions(Cluster(), startingOffsets="earliest")
    made._client = cast(Client, SimpleNamespace(subscription=lambda topic, *_, **__: topics[topic]))
    for topic in topics:
        made.pin(topic, start, new_query=True)
    made.unmake_new()
    made.unmake_new()
    assert {topic: one.done for topic, one in topics.items()} == {
        "new": ["delete"],
        "missing now": ["delete"],
        "found": [],
        "out of reach": ["delete"],
        "new, too": ["delete"],
    }
    (told,) = [line for line in caplog.messages if "could not be deleted" in line]
    assert '"job" on out of reach could not be deleted: no answer.' in told
    made.close()
    assert (topics["found"].done, topics["out of reach"].done) == (["close"], ["delete", "close"])


def test_what_a_query_that_goes_on_makes_again_stays() -> None:
    here = FakeSubscription(new=True)
    made, start = subscriptions(Cluster(), startingOffsets="earliest")
    made._client = cast(Client, SimpleNamespace(subscription=lambda topic, *_, **__: here))
    made.pin(TOPIC, start, new_query=False)
    made.unmake_new()
    assert here.done == []


@pytest.mark.parametrize("step", ["pin", "begin"])
def test_a_plan_gives_up_what_a_refused_query_has_made_and_nothing_of_one_that_runs(step: str) -> None:
    def plan() -> StreamPlan:
        return StreamPlan(brokers, Boundary("latest"), fail_on_data_loss=True, warn=print)

    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)), b=FakeTopic(entries(5, 0, 3)))
    brokers.refused = {"b": step}
    refused = plan()
    with pytest.raises(InvalidInput, match="no query begins on b"):
        refused.latest(refused.first(), None)
    assert brokers.given_up == 1
    brokers.refused = {}
    running = plan()
    end = running.latest(running.first(), None)
    brokers.held["a"].delivered = entries(4, 0, 0)  # another cluster
    with pytest.raises(InvalidInput):
        running.latest(end, None)
    assert brokers.given_up == 1
