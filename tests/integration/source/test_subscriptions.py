"""A query's durable subscription: one that was there before, one that is deleted, and topics that are made again."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from eos.errors import InvalidInput
from eos.pulsar.net.admin import Admin as AdminApi
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source.offsets import Offsets
from tests.conftest import MakeTopic
from tests.contract.conftest import Produce
from tests.integration.source.conftest import Admin, Run
from tests.integration.source.queries import Query
from tests.integration.source.streams import write
from tests.integration.source.test_options import subscriptions
from tests.topic_commands import retain_nothing, until_deleted

REMOVED = "subscription/job?force=true"


def roll(topic: str, admin: Admin) -> None:
    """Close the topic's ledger."""
    admin("PUT", topic, "unload")


def careless(run: Run, **options: str) -> Query:
    return run(failOnDataLoss="false", **options)


@pytest.fixture
def trimmed(pulsar: Any, make_topic: MakeTopic) -> str:
    """A topic that keeps only what a subscription still needs, as Pulsar does by default."""
    topic = make_topic("trimmed")
    retain_nothing(pulsar.admin_url, topic)
    return topic


@pytest.mark.parametrize("begins", ["latest", "time"])
def test_a_topic_of_a_pattern_that_is_made_again_is_read_from_its_beginning(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin, begins: str
) -> None:
    topic = make_topic("again")
    write(ours, topic, "old")
    options = {"startingTime": "32503680000000"} if begins == "time" else {"startingOffsets": "latest"}
    query = careless(run, topicsPattern=topic, **options)
    start = query.begins()
    write(ours, topic, "a")
    read = query.latest(start)
    assert query.read(start, read) == ["a"]
    admin("DELETE", topic, "?force=true")
    gone = query.latest(read)
    assert gone == Offsets({})
    admin("PUT", topic)
    write(ours, topic, "n1", "n2", "n3")
    back = query.latest(gone)
    assert query.behind(back) == ["n1", "n2", "n3"]


def test_a_subscription_that_is_deleted_while_a_query_runs_keeps_what_is_not_read(
    run: Run, ours: Client, trimmed: str, admin: Admin
) -> None:
    query = run(topic=trimmed, startingOffsets="latest")
    start = query.begins()
    write(ours, trimmed, "a", "b")
    read = query.latest(start)
    assert query.read(start, read) == ["a", "b"]
    write(ours, trimmed, "c")
    admin("DELETE", trimmed, REMOVED)
    end = query.latest(read)
    with ours.subscription(trimmed, "job", initial="latest") as cursor:
        stands = cursor.last_message_id()[1]
    assert stands is not None
    assert stands < read.topics[trimmed].entry
    roll(trimmed, admin)
    admin("POST", trimmed, "trim")
    assert query.read(read, end) == ["c"]


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_topic_that_is_made_again_before_its_first_message_was_read_is_a_loss(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin, restarted: bool
) -> None:
    topic = make_topic("early")
    query = run(topic=topic, startingOffsets="latest")
    start = query.begins()
    assert query.latest(start).topics == start.topics
    write(ours, topic, "x1", "x2", "x3")
    admin("DELETE", topic, "?force=true")
    admin("PUT", topic)
    write(ours, topic, "n1")
    for _ in range(2):
        if restarted:
            query = run(topic=topic, startingOffsets="latest")
        with pytest.raises(InvalidInput, match=f"data of {topic} was lost: .*subscription was gone.*made again"):
            query.latest(start)
    query = careless(run, topic=topic, startingOffsets="latest")
    assert query.behind(start) == ["n1"]
    assert "subscription was gone" in "\n".join(query.told)


def test_a_batch_that_is_read_again_sees_that_the_topic_was_made_again(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin
) -> None:
    topic = make_topic("replayed")
    query = run(topic=topic, startingOffsets="latest")
    start = query.begins()
    write(ours, topic, "x1")
    end = query.latest(start)
    admin("DELETE", topic, "?force=true")
    admin("PUT", topic)
    write(ours, topic, "n1")
    with pytest.raises(InvalidInput, match=f"data of {topic} was lost"):
        run(topic=topic).read(start, end)


def test_a_subscription_that_is_deleted_between_two_runs_is_no_loss_while_the_messages_are_there(
    run: Run, ours: Client, trimmed: str, admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    query = run(topic=trimmed, startingOffsets="latest")
    start = query.begins()
    query.brokers.close()
    write(ours, trimmed, "a")
    admin("DELETE", trimmed, REMOVED)
    write(ours, trimmed, "b")
    with caplog.at_level(logging.WARNING):
        assert run(topic=trimmed).behind(start) == ["a", "b"]
    assert f'the subscription "job" was missing on {trimmed}' in "\n".join(caplog.messages)


def test_a_subscription_that_is_deleted_between_two_runs_is_a_loss_once_the_ledger_is_gone(
    run: Run, ours: Client, trimmed: str, admin: Admin, pulsar: Any
) -> None:
    query = run(topic=trimmed, startingOffsets="latest")
    start = query.begins()
    query.brokers.close()
    (lost,) = write(ours, trimmed, "lost")
    admin("DELETE", trimmed, REMOVED)
    until_deleted(pulsar.admin_url, trimmed, {lost.ledger})
    write(ours, trimmed, "left")
    for _ in range(2):
        with pytest.raises(InvalidInput, match=f"data of {trimmed} was lost: .*subscription was gone"):
            run(topic=trimmed).latest(start)
    assert careless(run, topic=trimmed).behind(start) == ["left"]


def test_a_topic_that_is_new_to_the_checkpoint_is_read_from_its_first_message_on(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a savepoint is older than the topic, or the topic was taken out of the options for a while."""
    old, new = make_topic("old"), make_topic("new")
    write(ours, old, "o")
    write(ours, new, "a", "b")
    roll(new, admin)
    write(ours, new, "c", "d")
    query = run(topics=f"{old},{new}", startingOffsets="earliest")
    read = query.latest(query.plan.first())
    query.latest(read)
    query.brokers.close()
    before = Offsets({old: read.topics[old]})
    for _ in range(2):
        query = run(topics=f"{old},{new}")
        joined = query.latest(before)
        query.brokers.close()
    assert run(topics=f"{old},{new}").behind(joined) == ["a", "b", "c", "d"]
    told = [line for line in caplog.messages if f"{new} is new to the checkpoint" in line]
    assert ["Rows that the earlier run has read come again" in line for line in told] == [True, False]
    assert "may have read nothing yet" in told[1], "it was moved back, and stands there"


def test_a_checkpoint_of_another_cluster_is_refused_before_its_first_message_was_read(
    run: Run, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("elsewhere")
    start = Offsets.from_json({"version": 1, "topics": {topic: "pinned 812000000:14"}})
    words = f"was to begin after 812000000:14 on {topic}, but nothing is stored there.*another cluster"
    for _ in range(2):
        with pytest.raises(InvalidInput, match=words):
            run(topic=topic).latest(start)
    write(ours, topic, "a")
    with pytest.raises(InvalidInput, match=words):
        run(topic=topic).latest(start)
    query = careless(run, topic=topic)
    assert query.behind(start) == ["a"]
    assert "another cluster" in "\n".join(query.told)


def test_a_new_query_that_is_refused_leaves_no_subscription_where_it_came_by(
    run: Run, ours: Client, make_topic: MakeTopic, pulsar: Any
) -> None:
    """It would keep all messages of that topic for a query that never began."""
    made, kept = sorted(make_topic(f"refused-{number}") for number in range(2))
    first, _ = write(ours, made, "a", "b")
    (last,) = write(ours, kept, "c")
    behind = EntryId(last.ledger, last.entry + 9)
    query = run(topics=f"{made},{kept}", startingOffsets=json.dumps({made: f"{first.ledger}:-1", kept: str(behind)}))
    with pytest.raises(InvalidInput, match=f"begins at {behind} on {kept}, but the topic ends with {last}"):
        query.begins()
    assert [subscriptions(pulsar.admin_url, topic) for topic in (made, kept)] == [[], []]
    other_query(run, ours, kept)
    query = run(topics=f"{made},{kept}", startingOffsets="earliest")
    with pytest.raises(InvalidInput, match="stands at"):
        query.begins()
    assert [subscriptions(pulsar.admin_url, topic) for topic in (made, kept)] == [[], ["job"]]
    query = run(topic=made, startingOffsets=json.dumps({made: f"{first.ledger}:-1"}))
    start = query.begins()
    assert query.behind(start) == ["a", "b"]
    assert Offsets.from_json(json.loads(json.dumps(start.as_json()))) == start
    assert subscriptions(pulsar.admin_url, made) == ["job"]


def other_query(run: Run, ours: Client, topic: str) -> list[EntryId]:
    """Let a query read "a" and "b", and be gone with its checkpoint; return where the messages are."""
    query = run(topic=topic, startingOffsets="earliest")
    start = query.begins()
    places = write(ours, topic, "a", "b")
    assert query.latest(query.latest(start)) == query.latest(start)
    query.brokers.close()
    return write(ours, topic, "c") and places


@pytest.mark.parametrize("begins", ["earliest", "time", "entry"])
def test_a_new_query_whose_subscription_stands_elsewhere_is_refused_with_both_ways_out(
    run: Run, ours: Client, make_topic: MakeTopic, begins: str
) -> None:
    topic = make_topic("standing")
    places = other_query(run, ours, topic)
    given = {
        "earliest": {"startingOffsets": "earliest"},
        "time": {"startingTime": "0"},
        "entry": {"startingOffsets": json.dumps({topic: str(places[0])})},
    }[begins]
    words = f"on {topic}, but the subscription 'job' exists already.*another subscription.*resetSubscription=true"
    for _ in range(2):
        with pytest.raises(InvalidInput, match=words):
            run(topic=topic, **given).begins()
    query = run(topic=topic, resetSubscription="true", **given)
    start = query.begins()
    assert query.begins() == start, "asked for twice"
    assert query.behind(start) == ["a", "b", "c"]
    query.brokers.close()
    again = run(topic=topic, **given)
    assert again.behind(again.plan.first()) == ["a", "b", "c"], "a crash before the first batch changes nothing"


def test_a_new_query_that_names_a_later_entry_does_not_skip_what_another_has_not_read(
    run: Run, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("skipping")
    other_query(run, ours, topic)
    *_, last = write(ours, topic, "d", "e")
    given = {"topic": topic, "startingOffsets": json.dumps({topic: str(last)})}
    with pytest.raises(InvalidInput, match=r"exists already.*resetSubscription=true"):
        run(**given).begins()
    query = run(resetSubscription="true", **given)
    assert query.behind(query.plan.first()) == ["e"]


@pytest.mark.parametrize("named", [False, True], ids=["word", "by-topic"])
def test_a_new_query_that_names_latest_does_not_go_on_where_another_stands(
    run: Run, ours: Client, make_topic: MakeTopic, named: bool
) -> None:
    topic = make_topic("named-latest")
    other_query(run, ours, topic)
    given = {"topic": topic, "startingOffsets": json.dumps({topic: "latest"}) if named else "latest"}
    for _ in range(2):
        query = run(**given)
        with pytest.raises(InvalidInput, match=r"begins after .* exists already.*Leave startingOffsets out"):
            query.begins()
    query = run(resetSubscription="true", **given)
    end = query.latest(query.plan.first())
    query.brokers.close()
    write(ours, topic, "d")
    query = run(**given)
    assert query.read(query.plan.first(), end) == [], "batch 0 was planned, and is no other query's"
    assert query.behind(end) == ["d"]


def test_a_new_query_without_a_place_goes_on_where_the_subscription_stands_and_says_so(
    run: Run, ours: Client, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic("goes-on")
    other_query(run, ours, topic)
    query = run(topic=topic)
    with caplog.at_level(logging.WARNING):
        assert query.behind(query.plan.first()) == ["b", "c"]
    assert f'the subscription "job" of a new query exists already on {topic}' in "\n".join(caplog.messages)
    assert "resetSubscription=true" in "\n".join(caplog.messages)
    query.brokers.close()
    reset = run(topic=topic, resetSubscription="true")
    assert reset.behind(reset.plan.first()) == []


@pytest.mark.parametrize("more", [(), ("m4",)], ids=["nothing-new", "more"])
def test_a_reset_is_not_done_again_once_the_first_batch_was_planned(
    run: Run, ours: Client, trimmed: str, more: tuple[str, ...]
) -> None:
    """The query fails in its first batch, and a supervisor starts it again with the same options."""
    other_query(run, ours, trimmed)
    given = {"topic": trimmed, "startingOffsets": "latest", "resetSubscription": "true"}
    query = run(**given)
    start = query.plan.first()
    query.latest(start)
    write(ours, trimmed, "m1", "m2", "m3")
    end = query.latest(start)  # the driver had died before Spark logged the other end
    query.brokers.close()
    write(ours, trimmed, *more)
    for _ in range(2):
        query = run(**given)
        assert query.read(query.plan.first(), end) == ["m1", "m2", "m3"]
        query.brokers.close()
    query = run(**given)
    assert query.behind(end) == list(more)
    query.brokers.close()
    fresh = run(**given)
    assert fresh.behind(fresh.plan.first()) == [], "a new checkpoint is reset again"


def test_a_subscription_that_a_consumer_has_joined_is_not_reset(run: Run, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("in-use")
    write(ours, topic, "a")
    run(topic=topic, startingOffsets="latest").begins()
    query = run(topic=topic, startingOffsets="earliest", resetSubscription="true")
    start = query.plan.first()
    with pytest.raises(InvalidInput, match=r"resetSubscription=true must not move .* A consumer is connected"):
        query.latest(start)


def test_the_first_chunk_of_a_message_stays_stored_until_the_message_was_read(
    run: Run, produce: Produce, trimmed: str, admin: Admin, pulsar: Any
) -> None:
    query = run(topic=trimmed, startingOffsets="earliest")
    position = query.begins()

    def send(number: int | None) -> EntryId:
        producer = produce(trimmed)
        metadata = MessageMetadata(producer_name=producer.name, sequence_id=number or 9, publish_time=1)
        if number is not None:
            metadata.uuid, metadata.chunk_id, metadata.num_chunks_from_msg = "large", number, 3
            metadata.total_chunk_msg_size = 6
        producer.send_described(metadata, b"%02d" % (9 if number is None else number))
        stored = producer.event()
        assert isinstance(stored, MessageId)
        return EntryId(stored.ledger, stored.entry)

    read: list[str] = []

    def batch() -> None:
        nonlocal position
        end = query.latest(position)
        read.extend(query.read(position, end))
        position = end
        query.latest(position)

    first = send(0)
    batch()
    roll(trimmed, admin)
    for number in (None, 1, None):
        send(number)
        batch()
    with AdminApi(pulsar.admin_url) as asked:
        for _ in range(3):
            roll(trimmed, admin)
            admin("POST", trimmed, "trim")
        assert first.ledger in {one.id for one in asked.ledgers(trimmed)}
    assert read == ["09", "09"]
    query.brokers.close()
    query = run(topic=trimmed)
    send(2)
    batch()
    assert read == ["09", "09", "000102"]
    send(None)
    send(None)
    batch()
    until_deleted(pulsar.admin_url, trimmed, {first.ledger})
