"""The brokers of a plan are asked again where an answer may come later, and not where none will."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType

from eos.errors import ConnectionLost, InvalidInput, Refused, RefusedForGood, TopicMissing, Unanswered
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import EntryId, TopicLedger
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandGetSchemaResponse, Schema
from eos.source.batch_pace import Limits
from eos.source.boundaries import Boundary
from eos.source.brokers import LOOKS_AT_ONCE, PulsarBrokers
from eos.source.errors import DataLost
from eos.source.offsets import BEGINNING, Position
from eos.source.options import parse_options
from eos.source.ranges import Found, Range, TopicState
from eos.source.value_schema import of_type
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, cut, first_then_well
from tests.unit.source.fake_subscription import FakeSubscription
from tests.unit.source.memory_cluster import Job, MemoryCluster, StoredTopic

TOPIC = "persistent://public/default/t"
LAST = EntryId(3, 7)


class Cursor:
    """Answers with these, one for each question."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, EntryId(0, -1)


def brokers(cursor: Cursor) -> PulsarBrokers:
    made = PulsarBrokers.__new__(PulsarBrokers)
    made._subscriptions = SimpleNamespace(joined=lambda topic: cursor)  # type: ignore[assignment]
    return made


def test_a_bookie_that_is_away_for_a_moment_does_not_end_the_query() -> None:
    away = Refused("ask for the last message id", "MetadataError", "Bookie handle is not available")
    assert brokers(Cursor(away, away, LAST)).last(TOPIC) == LAST


def test_a_broker_that_is_away_for_a_moment_ends_no_query_that_runs_and_none_begins(broker: FakeBroker) -> None:
    made = PulsarBrokers(parse_options({"service.url": broker.url, "topic": "t", "subscription": "s"}, "stream"))
    broker.handlers[Type.PARTITIONED_METADATA] = first_then_well(cut)
    with pytest.raises(ConnectionLost):
        made.topics(all_named=True)
    broker.handlers[Type.PARTITIONED_METADATA] = first_then_well(cut)
    assert made.topics(all_named=False) == [TOPIC]


def test_a_partition_that_is_named_beside_its_topic_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "partitions", lambda self, topic: 0 if topic.endswith("-partition-1") else 2)
    given = {"service.url": "pulsar://h:1", "topics": "t,t-partition-1"}
    made = PulsarBrokers(parse_options(given, "batch"))
    assert made.topics(all_named=True) == [f"{TOPIC}-partition-0", f"{TOPIC}-partition-1"]


def test_what_is_refused_for_good_is_asked_once() -> None:
    cursor = Cursor(RefusedForGood("ask", "AuthorizationError", "no right"), LAST)
    with pytest.raises(RefusedForGood):
        brokers(cursor).last(TOPIC)
    assert cursor.answers == [LAST]


def test_a_role_that_may_not_ask_for_ledgers_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def forbidden(admin: Admin, topic: str) -> list[TopicLedger]:
        asked.append(topic)
        raise Refused("GET internalStats", "403", "no permission")

    monkeypatch.setattr(Admin, "ledgers", forbidden)
    given = {"service.url": "pulsar://h:1", "topic": "t", "admin.url": "http://h:1"}
    with pytest.raises(InvalidInput, match=r"no permission\. .*role that may consume.*leave out admin\.url"):
        PulsarBrokers(parse_options(given, "batch")).ledgers(TOPIC)
    assert asked == [TOPIC], "asking again is of no use"


def test_places_are_looked_at_side_by_side_and_a_loss_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(LOOKS_AT_ONCE)

    def first(self: PulsarBrokers, topic: str, entry: EntryId) -> Found:
        together.wait(60)
        if entry.entry == 2:
            raise InvalidInput("data was lost")
        return Found(EntryId(entry.ledger, entry.entry + 10), 1)

    monkeypatch.setattr(PulsarBrokers, "first", first)
    found = brokers(Cursor()).firsts(TOPIC, [EntryId(3, entry) for entry in range(LOOKS_AT_ONCE)])
    assert found == [None if entry == 2 else EntryId(3, entry + 10) for entry in range(LOOKS_AT_ONCE)]


@pytest.mark.parametrize("hides", [True, False])
def test_no_batch_is_planned_to_end_with_a_message_that_need_not_be_committed(
    hides: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stay in the checkpoint, and never come once the broker has transactions again."""
    looked_at: list[EntryId] = []
    cursor = SimpleNamespace(hides_uncommitted=lambda: hides)
    made = PulsarBrokers(
        parse_options({"service.url": "pulsar://nowhere", "topic": "t", "subscription": "s"}, "stream")
    )
    made._subscriptions = SimpleNamespace(  # type: ignore[assignment]
        look=lambda topic, start: TopicState(LAST, EntryId(1, -1)), joined=lambda topic: cursor
    )
    monkeypatch.setattr(PulsarBrokers, "first", lambda self, topic, entry: looked_at.append(entry))
    for _ in range(2):
        made.look(TOPIC, BEGINNING)
    assert looked_at == ([] if hides else [LAST]), "such a broker takes no message of a transaction later"


def test_chunks_are_kept_from_where_a_subscription_stands_that_exists(broker: FakeBroker) -> None:
    """One that is gone with its start may be made again at an earlier ledger, once the loss is accepted."""
    states = iter([TopicState(LAST, EntryId(3, 7), made=True, left=EntryId(3, 7)), TopicState(LAST, EntryId(1, -1))])
    made = PulsarBrokers(parse_options({"service.url": broker.url, "topic": "t", "subscription": "s"}, "stream"))
    made._subscriptions = SimpleNamespace(  # type: ignore[assignment]
        look=lambda topic, start: next(states), joined=lambda topic: None
    )
    made.look(TOPIC, Position(EntryId(8, 14), delivered=False))
    assert made._unfinished == {}
    made.look(TOPIC, BEGINNING)
    assert made._unfinished.keys() == {TOPIC}


def retaining(cursor: FakeSubscription, start: EntryId) -> AbstractContextManager[None]:
    made = PulsarBrokers(parse_options({"service.url": "pulsar://h:1", "topic": "t"}, "batch"))
    made._client = SimpleNamespace(subscription=lambda topic, name, initial: cursor)  # type: ignore[assignment]
    return made.retained(Range(TOPIC, Position(start), EntryId(9, 9)), "spark-batch-1")


LEAVING = {
    "the topic is gone": (TopicMissing("it is gone"), False),
    "no answer": (Unanswered("no answer"), True),
    "the connection is lost": (ConnectionLost("it is lost"), True),
    "refused": (Refused("delete it", "Unknown", "no"), True),
    "refused for good": (RefusedForGood("delete it", "AuthorizationError", "no right"), True),
}


@pytest.mark.parametrize(("error", "warned"), LEAVING.values(), ids=LEAVING.keys())
def test_a_range_that_was_read_is_read_though_its_subscription_cannot_be_deleted(
    error: Exception, caplog: pytest.LogCaptureFixture, *, warned: bool
) -> None:
    with retaining(FakeSubscription(deleted=error), EntryId(3, 4)):
        pass
    with pytest.raises(DataLost, match="rows"), retaining(FakeSubscription(deleted=error), EntryId(3, 4)):
        raise DataLost("rows")
    text = f'"spark-batch-1" of {TOPIC} could not be deleted: {error}.'
    assert [text in line for line in caplog.messages] == [True] * (2 * warned)
    assert all(f"eos doctor --remove-leftovers {TOPIC}" in line for line in caplog.messages)
    left = FakeSubscription(deleted=error)
    with retaining(left, EntryId(3, -1)):
        assert left.done == []
    assert left.done == ["delete", "close"][: 1 + warned]


def test_a_subscription_that_cannot_move_up_to_the_range_is_deleted() -> None:
    left = FakeSubscription(moved=Unanswered("no answer"))
    with pytest.raises(Unanswered), retaining(left, EntryId(3, 4)):
        pass
    assert left.done == ["acknowledge 3:4", "delete"]


def test_the_schema_of_values_is_asked_for_once_a_topic_and_must_be_one(broker: FakeBroker) -> None:
    def kept(session: Session, frame: Frame) -> None:
        kind = Schema.Type.Int32 if frame.command.get_schema.topic.endswith("a") else Schema.Type.String
        response = CommandGetSchemaResponse(schema=Schema(type=kind), schema_version=bytes(8))
        session.answer(frame.command, BaseCommand(type=Type.GET_SCHEMA_RESPONSE, get_schema_response=response))

    broker.handlers[Type.GET_SCHEMA] = kept
    given = {"service.url": broker.url, "valueFormat": "schema"}
    two_of_one = parse_options(given | {"topics": "a-partition-0,a-partition-1"}, "batch")
    assert PulsarBrokers(two_of_one).value_schema().spark_type == IntegerType()
    assert len(broker.commands(Type.GET_SCHEMA)) == 1
    with pytest.raises(
        InvalidInput, match=r"different schemas: .* of persistent://public/default/a is INT32, but .* is STRING"
    ):
        PulsarBrokers(parse_options(given | {"topics": "a,b"}, "batch")).value_schema()


def test_topics_that_do_not_have_the_same_newest_schema_yet_are_read_by_a_version_that_both_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As while one producer after the other gets a newer schema."""
    versions = {"a": ["INT32", "INT64"], "b": ["INT32"]}

    def schema(self: PulsarBrokers, topic: str, version: bytes | None = None) -> Registered | None:
        kinds = versions[topic[-1]]
        number = len(kinds) - 1 if version is None else int.from_bytes(version, "big")
        return Registered(topic, number.to_bytes(8, "big"), kinds[number], b"", {})

    monkeypatch.setattr(PulsarBrokers, "schema", schema)
    monkeypatch.setattr(PulsarBrokers, "topics", lambda self, all_named: [f"persistent://p/d/{one}" for one in "ab"])
    options = {"service.url": "pulsar://nowhere", "topics": "p/d/a,p/d/b", "valueFormat": "schema"}
    brokers = PulsarBrokers(parse_options(options, "batch"))
    with pytest.raises(InvalidInput, match=r"different schemas.*declare a type that each of them has in one of its"):
        brokers.value_schema()
    assert brokers.value_schema(partial(of_type, IntegerType())).spark_type == IntegerType()


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_query_that_goes_on_without_a_topic_that_is_gone_needs_no_schema_of_it(
    fail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"topics": "a,b", "startingOffsets": "earliest", "failOnDataLoss": fail}
    job = Job(MemoryCluster(a=StoredTopic({5: 3}), b=StoredTopic({6: 3})), options)
    assert len(job.start().drain()) == 6
    del job.cluster.held["persistent://public/default/b"]
    job.start(valueFormat="schema")
    integers = Registered("a", bytes(8), "INT32", b"", {})
    monkeypatch.setattr(job.brokers, "schema", lambda topic: integers)
    if fail == "true":
        with pytest.raises(TopicMissing, match="default/b"):
            job.brokers.value_schema()
        return
    assert job.brokers.value_schema().spark_type == IntegerType()
    assert job.drain() == []
    assert "default/b is gone" in "".join(job.told)


def new_query() -> Job:
    cluster = MemoryCluster(a=StoredTopic({5: 3}), b=StoredTopic({6: 3}))
    return Job(cluster, {"topicsPattern": "persistent://public/default/.*", "startingOffsets": "latest"}).start()


def fails(monkeypatch: pytest.MonkeyPatch, job: Job, step: str) -> None:
    """Let a later step of the first plan fail, once the query has begun and another topic appears."""
    begin, asked, other = job.brokers.begin, getattr(job.brokers, step), "persistent://public/default/c"

    def begun(topic: str, start: Boundary) -> EntryId:
        place = begin(topic, start)
        job.cluster.topic(topic).write(place.ledger, 2)
        job.cluster.held[other] = StoredTopic({7: 1})
        return place

    def refused(*given: Any, **named: Any) -> Any:
        found = asked(*given, **named)
        if other in job.cluster.held:
            raise Unanswered("no answer")
        return found

    monkeypatch.setattr(job.brokers, "begin", begun)
    monkeypatch.setattr(job.brokers, step, refused)


@pytest.mark.parametrize("step", ["topics", "look", "first", "pin"])
def test_a_first_plan_that_fails_after_the_query_has_begun_leaves_no_subscription(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start would find them behind, and refuse an explicit latest."""
    job = new_query()
    fails(monkeypatch, job, step)
    with pytest.raises(Unanswered):
        job.plan.latest(job.plan.first(), Limits(entries=1))
    assert [topic.subscriptions for topic in job.cluster.held.values()] == [{}, {}, {}]
    assert job.start().trigger() == []
    assert all("job" in topic.subscriptions for topic in job.cluster.held.values())


def test_a_plan_of_batch_0_that_fails_after_another_one_keeps_the_subscriptions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark may have kept the first plan, and batch 0 needs what the subscriptions keep."""
    job = new_query()
    end = job.plan.latest(job.plan.first(), None)

    def refused(*_: Any) -> TopicState:
        raise Unanswered("no answer")

    monkeypatch.setattr(job.brokers, "look", refused)
    with pytest.raises(Unanswered):
        job.plan.latest(job.plan.first(), None)
    assert [topic.subscriptions["job"] for topic in job.cluster.held.values()] == [
        end.starts[topic].entry for topic in job.cluster.held
    ]
