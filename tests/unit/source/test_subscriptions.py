"""Where a new query begins whose subscription was there before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos.errors import EosError, InvalidInput, LimitReached, Refused, TopicMissing, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import full_name
from eos.pulsar.wire.message_id import EntryId
from eos.source.boundaries import Boundary
from eos.source.errors import DataLost, Losses
from eos.source.options import parse_options
from eos.source.ranges import Found
from eos.source.stream_plan import StreamPlan
from eos.source.subscriptions import Subscriptions
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, at, entries
from tests.unit.source.fake_subscription import FakeSubscription
from tests.unit.source.memory_cluster import Job, MemoryCluster, StoredTopic, gone, gone_with_messages

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
def test_an_explicit_latest_is_refused_where_another_query_has_not_read_up_to_the_end(where: str) -> None:
    made, start = subscriptions(Cluster(), startingOffsets=where)
    with pytest.raises(InvalidInput, match=r"begins after 5:9 .* stands at 5:2.*another sub.*reset.*Leave startingOff"):
        made.begin(TOPIC, start)


def test_the_default_goes_on_where_the_subscription_stands_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    made, start = subscriptions(Cluster())
    with caplog.at_level(logging.WARNING):
        assert made.begin(TOPIC, start) == at("5:2")
    assert "exists already" in caplog.messages[0]


@pytest.mark.parametrize("where", LATEST)
def test_a_subscription_is_reset_once_where_the_query_begins_again(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    made, start = subscriptions(cluster, startingOffsets=where, resetSubscription="true")
    for _ in range(2):
        assert made.begin(TOPIC, start) == at("5:9")
    assert cluster.moved == [at("5:10")]
    assert "has moved" in caplog.messages[0]


def test_a_loss_at_the_start_is_as_the_option_says(caplog: pytest.LogCaptureFixture) -> None:
    made, start = subscriptions(Cluster(lost=True), startingOffsets="earliest")
    with pytest.raises(DataLost, match="nothing is left"):
        made.begin(TOPIC, start)
    cluster = Cluster(lost=True)
    made, start = subscriptions(cluster, startingOffsets="earliest", failOnDataLoss="false")
    assert made.begin(TOPIC, start) == at("5:2")
    assert "nothing is left" in caplog.text
    assert cluster.lose.count == 1


def test_what_a_refused_query_has_made_is_deleted_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    topics = {
        "new": FakeSubscription(new=True),
        "missing now": FakeSubscription(new=True, deleted=TopicMissing("it is gone")),
        "found": FakeSubscription(new=False),
        "not allowed": FakeSubscription(new=True, deleted=Refused("unsubscribe", "UnknownError", "no")),
        "new, too": FakeSubscription(new=True),
        "out of reach": FakeSubscription(new=True, deleted=Unanswered("no answer")),
        "out of reach, too": FakeSubscription(new=True, deleted=Unanswered("no answer")),
    }

    def join(topic: str, name: str, *, missing: Callable[[], None], **_: Any) -> FakeSubscription:
        if topics[topic].new:
            missing()
        return topics[topic]

    made, start = subscriptions(Cluster(), startingOffsets="earliest")
    made._client = cast(Client, SimpleNamespace(subscription=join))
    for topic in topics:
        made.begin(topic, start)
    made.unmake_new()
    made.unmake_new()
    assert {topic: one.done for topic, one in topics.items()} == {
        "new": ["delete"],
        "missing now": ["delete"],
        "found": [],
        "not allowed": ["delete"],
        "new, too": ["delete"],
        "out of reach": ["delete"],
        "out of reach, too": [],  # each would take as long as a time-out
    }
    told = [line.split(" on ")[1] for line in caplog.messages if "could not be deleted" in line]
    assert [line.split(". The broker")[0] for line in told] == [
        "not allowed could not be deleted: unsubscribe: the broker answered UnknownError: no",
        "out of reach could not be deleted: no answer",
        "out of reach, too could not be deleted: no answer",
    ]
    made.close()
    assert (topics["found"].done, topics["not allowed"].done) == (["close"], ["delete", "close"])


REFUSALS: dict[str, EosError] = {
    "refused for good": InvalidInput("no query begins here"),
    "a limit": LimitReached("subscribe to b", "NotAllowedError", "Exceed the maximum number of subscriptions"),
    "no answer": Unanswered("no answer"),
}


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
def test_a_plan_gives_up_what_a_query_has_made_that_cannot_begin_and_nothing_of_one_that_runs(error: EosError) -> None:
    def plan() -> StreamPlan:
        return StreamPlan(brokers, Boundary("latest"), fail_on_data_loss=True, warn=print)

    brokers = FakeBrokers(a=FakeTopic(entries(5, 0, 3)), b=FakeTopic(entries(5, 0, 3)))
    brokers.refused = {"b": error}
    refused = plan()
    with pytest.raises(type(error)):
        refused.latest(refused.first(), None)
    assert brokers.given_up == 1
    brokers.refused = {}
    running = plan()
    end = running.latest(running.first(), None)
    brokers.held["a"].delivered = entries(4, 0, 0)  # another cluster
    with pytest.raises(InvalidInput):
        running.latest(end, None)
    assert brokers.given_up == 1


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("topic", ["a", "b"])
def test_a_query_that_cannot_begin_leaves_no_subscription_also_where_no_answer_came(
    topic: str, answered: bool, error: EosError
) -> None:
    cluster = MemoryCluster(a=StoredTopic({5: 3}), b=StoredTopic({6: 3}))
    name = full_name(topic)
    if answered:
        cluster.fails = {f"subscribe to {name}": [error] * 9}
    else:  # the broker has made it, and refuses the next question
        cluster.fails = {f"answer to subscribe to {name}": [Unanswered("no answer")], f"last of {name}": [error] * 9}
    job = Job(cluster, {"topics": "a,b", "startingOffsets": "earliest"}).start()
    with pytest.raises(type(error)):
        job.trigger()
    assert [one.subscriptions for one in cluster.held.values()] == [{}, {}]


STARTS: dict[str, dict[str, str]] = {
    "earliest": {"startingOffsets": "earliest"},
    "latest": {"startingOffsets": "latest"},
    "default": {},
    "time": {"startingTime": "1"},
    "future": {"startingTime": "5000"},
    "entry": {"startingOffsets": '{"t": "6:4"}'},
    "first entry of a later ledger": {"startingOffsets": '{"t": "7:0"}'},
    "reset": {"startingOffsets": "earliest", "resetSubscription": "true"},
}


def moved(topic: StoredTopic) -> None:
    topic.subscriptions["job"] = at("8:1")


def moved_with_messages(topic: StoredTopic) -> None:
    moved(topic)
    topic.trim()


FAULTS: dict[str, Callable[[StoredTopic], object]] = {
    "nothing": lambda topic: None,
    "gone": gone,
    "gone with messages": gone_with_messages,
    "moved": moved,
    "moved with messages": moved_with_messages,
}


@pytest.mark.parametrize("changed_to", ["as before", "earliest", "latest", '{"t": "8:1"}', '{"other": "8:1"}'])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("start", STARTS)
def test_a_batch_0_that_was_planned_reads_the_same_again_or_ends_with_a_loss(
    start: str, fault: str, changed_to: str
) -> None:
    """Spark asks where the query begins in each run until batch 0 is committed, also where batch 0 was planned."""
    topic = StoredTopic({5: 10, 6: 10, 7: 5})
    topic.times = {entry: 1 + 100 * (entry.ledger - 5) for entry in topic.entries}
    job = Job(MemoryCluster(t=topic), {"topic": "t", **STARTS[start]})
    first = job.start().trigger(dies=True)
    assert len(first) == {"earliest": 25, "time": 25, "reset": 25, "entry": 11}.get(start, 5 * ("first" in start))
    begins = topic.subscriptions["job"]
    topic.write(7, 5)
    topic.write(8, 5)
    FAULTS[fault](topic)
    after = [f"t@{entry}" for entry in topic.entries if entry > begins]
    given = {} if changed_to == "as before" else {"startingTime": "", "startingOffsets": changed_to}
    for _ in range(2):
        again = Job(job.cluster, {**job.options, **given}, list(job.ends))
        again.options = {name: text for name, text in again.options.items() if text}
        again.start()
        if "with messages" in fault:
            with pytest.raises(DataLost, match=r"data of .*t was lost"):
                again.drain()
            continue
        assert again.trigger(dies=True) == first
        stands = topic.subscriptions.get("job", begins)
        assert stands <= begins or fault == "moved", "it keeps what batch 0 has still to read"
    if "with messages" not in fault:
        assert again.trigger() == first
        assert first + again.trigger(dies=True) == after
        if fault != "moved":
            topic.trim()
            again.start()
        assert first + again.drain() == after
        return
    careless = Job(job.cluster, job.options | {"failOnDataLoss": "false"}, list(job.ends)).start()
    with suppress(DataLost):  # the end that was planned may be gone, which the task finds
        careless.drain()
    assert careless.told


def test_a_loss_that_comes_between_the_join_and_the_look_is_not_hidden_and_told_where_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cursor = FakeSubscription(deleted=Unanswered("no answer"))
    made, _ = subscriptions(Cluster())
    made._client = cast(Client, SimpleNamespace(subscription=lambda *_, **__: cursor))
    made.unmake(TOPIC)
    (told,) = caplog.messages
    assert "hides a loss from the next run" in told
    assert "could not be deleted: no answer. Delete it before you start the query again." in told


def raised(batches: int) -> tuple[Job, StoredTopic]:
    """Return a query that has read a partition which was added, with its checkpoint as it was before that."""
    old, new = StoredTopic({5: 10}), StoredTopic({9: 0})
    cluster = MemoryCluster(**{"t-partition-0": old})
    cluster.partitions_of["persistent://public/default/t"] = 1
    job = Job(cluster, {"topic": "t", "startingOffsets": "earliest"}).start()
    job.drain()
    saved = len(job.ends)
    cluster.partitions_of["persistent://public/default/t"] = 2
    cluster.held["persistent://public/default/t-partition-1"] = new
    job.drain()
    for ledger in range(9, 9 + batches):
        new.write(ledger, 10)
        job.drain()
    return job.restored(saved), new


def taken_out(batches: int) -> tuple[Job, StoredTopic]:
    """Return a query that has read a topic which was taken out of its options and is put in again."""
    other, topic = StoredTopic({5: 10}), StoredTopic({9: 0})
    job = Job(MemoryCluster(a=other, b=topic), {"topics": "a,b", "startingOffsets": "earliest"}).start()
    job.drain()
    for ledger in range(9, 9 + batches):
        topic.write(ledger, 10)
        job.drain()
    job.start(topics="a", failOnDataLoss="false").drain()
    other.write(5, 1)
    job.drain()
    return job, topic


@pytest.mark.parametrize("batches", [0, 1, 3])
@pytest.mark.parametrize("deleted", ["nothing", "what was read", "what was skipped", "where it stands"])
@pytest.mark.parametrize("made", [raised, taken_out])
def test_a_topic_that_is_new_to_the_checkpoint_is_read_from_its_first_message_on_wherever_the_subscription_stands(
    made: Callable[[int], tuple[Job, StoredTopic]], deleted: str, batches: int, caplog: pytest.LogCaptureFixture
) -> None:
    job, topic = made(batches)
    topic.write(20, 5)
    stands = topic.subscriptions["job"]
    if deleted == "what was skipped" and batches > 0:
        topic.subscriptions["job"] = topic.entries[-6]  # the broker moves it on to 20:-1
    if deleted.startswith("what was"):
        topic.trim()
    elif deleted == "where it stands":
        topic.ledgers = {20: topic.ledgers[20]}
    caplog.clear()
    if deleted == "where it stands" and batches > 0:
        for _ in range(2):
            with pytest.raises(DataLost, match=f"new to the checkpoint, .* stands at {stands}, which is no longer"):
                job.start().drain()
        job.start(failOnDataLoss="false")
        rows = job.drain()
        assert job.brokers.lose.count == 1
    else:
        rows = job.start().drain()
    ours = [row.split("@")[1] for row in rows if not row.startswith(("a@", "t-partition-0@"))]
    assert ours == [str(entry) for entry in topic.entries]
    assert job.told == []
    again = [line for line in caplog.messages if "Rows that the earlier run has read come again" in line]
    assert len(again) == (batches > 0 and deleted != "what was skipped"), "nothing to tell of where nothing was read"
    unsure = [line for line in caplog.messages if "may have read nothing yet" in line]
    assert len(unsure) == (batches == 0 or deleted == "what was skipped")
    assert job.start().drain() == []


def test_a_topic_that_appears_is_pinned_again_after_a_crash(caplog: pytest.LogCaptureFixture) -> None:
    """A broker leaves a subscription in such a place too that has skipped messages."""
    job, topic = raised(0)
    topic.write(9, 5)
    for _ in range(2):
        assert "pinned 9:-1" in job.start().plan.latest(job.end(0), None).as_json()["topics"].values()
    assert ["may have read nothing yet" in line for line in caplog.messages] == [True, True]


def test_a_topic_that_is_made_again_while_the_query_runs_is_read_from_its_beginning() -> None:
    """The start that was pinned on the topic before is none that its subscription must find."""
    cluster = MemoryCluster(t=StoredTopic({5: 10}))
    job = Job(cluster, {"topicsPattern": "persistent://public/default/.*", "failOnDataLoss": "false"}).start()
    assert job.drain() == []
    del cluster.held[TOPIC]
    assert job.drain() == []
    cluster.held[TOPIC] = StoredTopic({30: 3})
    assert job.drain() == ["t@30:0", "t@30:1", "t@30:2"]
    (told,) = job.told
    assert "is gone" in told


@pytest.mark.parametrize("named", [True, False])
def test_a_missing_subscription_may_have_had_another_name(named: bool, caplog: pytest.LogCaptureFixture) -> None:
    old, new = ({"subscription": "job"}, {"subscription": "other"}) if named else ({"subscriptionPrefix": "job"},) * 2
    job = Job(MemoryCluster(t=StoredTopic({5: 10}), u=StoredTopic({6: 10})), {"startingOffsets": "earliest"})
    assert len(job.start(topic="t", **old).drain()) == 10
    job.cluster.held[TOPIC].write(5, 3)
    assert len(job.start(topics="t,u", **new).drain()) == 13
    (told,) = [line for line in caplog.messages if f"was missing on {TOPIC}." in line]
    why = "option subscription had another value" if named else "query has other topics than"
    assert f"If the {why} before, the subscription of the old name is still there" in told


@pytest.mark.parametrize("change", ["a partition is added", "a topic is deleted"])
def test_a_planned_batch_0_is_read_again_though_a_new_query_would_be_refused(change: str) -> None:
    whole = "persistent://public/default/p"
    cluster = MemoryCluster(**{"p-partition-0": StoredTopic({5: 3})}, t=StoredTopic({6: 0}))
    cluster.partitions_of[whole] = 1
    options = {"topics": "p,t", "startingOffsets": '{"p-partition-0": "earliest", "t": "earliest"}'}
    job = Job(cluster, options | {"failOnDataLoss": "false"})
    first = job.start().trigger(dies=True)
    assert len(first) == 3
    if change == "a topic is deleted":
        del cluster.held[TOPIC]
    else:
        cluster.partitions_of[whole] = 2
        cluster.held[f"{whole}-partition-1"] = StoredTopic({9: 2})
    again = job.start().drain()
    assert again == first + (["p-partition-1@9:0", "p-partition-1@9:1"] if change == "a partition is added" else [])
