"""The plan of a query against a real broker, without Spark."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest
from kazoo.client import KazooClient

from eos.config import Cluster
from eos.errors import InvalidInput, RefusedForGood, TopicMissing
from eos.inspect.tables import tables
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch_plan import batch_ranges
from eos.source.boundaries import Boundary
from eos.source.brokers import PulsarBrokers
from eos.source.offsets import Offsets, Position
from eos.source.options import parse_options
from tests.clients import end, transaction
from tests.conftest import MakeTopic, create_topic
from tests.integration.source.conftest import Admin, Run
from tests.integration.source.queries import Query, read
from tests.integration.source.streams import write
from tests.integration.source.test_subscriptions import roll
from tests.waiting import until


@pytest.mark.parametrize("start", ["earliest", "latest", "time"])
def test_a_query_that_asks_again_begins_at_the_same_place(
    run: Run, ours: Client, make_topic: MakeTopic, start: str
) -> None:
    topic = make_topic(start)
    write(ours, topic, "a", "b")
    options = {"startingOffsets": start} if start == "earliest" else {}
    if start == "time":
        time.sleep(0.01)
        options = {"startingTime": str(int(time.time() * 1000))}
        time.sleep(0.01)
    first = run(topic=topic, **options).begins()
    write(ours, topic, "c", "d")
    query = run(topic=topic, **options)
    assert query.begins() == first
    assert query.behind(first) == (["a", "b", "c", "d"] if start == "earliest" else ["c", "d"])


@pytest.mark.parametrize("start", ["latest", "time"])
def test_a_place_at_the_end_of_a_ledger_stays_when_the_ledger_is_closed(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin, start: str
) -> None:
    topic = make_topic("rolled")
    write(ours, topic, "a")
    time.sleep(0.01)
    now = str(int(time.time() * 1000))
    options = {"startingTime": now} if start == "time" else {}
    run(topic=topic, **options).begins()
    roll(topic, admin)
    write(ours, topic, "b", "c")
    again = run(topic=topic, **options)
    assert again.behind(again.plan.first()) == ["b", "c"]


@pytest.mark.parametrize("options", [{}, {"resetSubscription": "true"}])
def test_a_query_begins_with_the_first_entry_of_a_later_ledger(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin, options: dict[str, str]
) -> None:
    """No cursor stands before it while older ledgers are stored, but after the last entry of the ledger before."""
    topic = make_topic("later")
    (last,) = write(ours, topic, "a")
    roll(topic, admin)
    first, _ = write(ours, topic, "b", "c")
    assert (first.entry, first.ledger > last.ledger) == (0, True)
    for place in (str(first), f"{first.ledger}:-1"):
        given = {"topic": topic, "subscription": f"job {place}", "startingOffsets": json.dumps({topic: place})}
        begun = run(**given, **options)
        assert begun.begins().topics[topic] == Position(EntryId(last.ledger, last.entry), delivered=False)
        begun.brokers.close()
        again = run(**given, **options)
        assert again.behind(again.plan.first()) == ["b", "c"]


@pytest.mark.parametrize("written", [True, False])
def test_a_start_where_a_broker_moves_a_subscription_is_found_while_older_ledgers_are_stored(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin, *, written: bool
) -> None:
    topic = make_topic("moved-on")
    write(ours, topic, "a")
    roll(topic, admin)
    first, _ = write(ours, topic, "b", "c")
    place = EntryId(first.ledger if written else first.ledger + 1_000, -1)
    start = Offsets({topic: Position(place, delivered=False)})
    query = run(topic=topic)
    if written:
        assert query.behind(start) == ["b", "c"]
    else:
        with pytest.raises(InvalidInput, match="another cluster"):
            query.latest(start)
    with ours.subscription(topic, "job", initial="latest") as cursor:
        stands = cursor.last_message_id()[1]
    assert stands is not None
    assert (stands < EntryId(first.ledger, -1)) == written, "it was made at the beginning, and not for another cluster"


def test_latest_keeps_a_transaction_whole_that_is_open_at_the_start(
    run: Run, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("whole")
    write(ours, topic, "old")
    held = transaction(ours, topic)
    with ours.producer(topic) as producer:
        producer.send_record(b"one half", held)
        query = run(topic=topic, startingOffsets="latest")
        first = query.begins()
        producer.send_record(b"other half", held)
    end(ours, held, commit=True)
    assert query.behind(first) == ["one half", "other half"]
    assert run(topic=topic).begins() == first


def test_an_empty_topic_is_read_from_its_beginning_whatever_the_start(
    run: Run, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("empty", 2)
    first = run(topic=topic).begins()
    write(ours, f"{topic}-partition-1", "a")
    again = run(topic=topic)
    assert again.begins() == first
    assert again.behind(first) == ["a"]


def test_a_query_begins_at_the_entries_that_are_named(run: Run, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("named", 2)
    at = write(ours, f"{topic}-partition-0", "a", "b", "c")
    write(ours, f"{topic}-partition-1", "x", "y")
    named = json.dumps({f"{topic}-partition-0": str(at[1]), topic: "earliest"})
    first = run(topic=topic, startingOffsets=named).begins()
    query = run(topic=topic, startingOffsets=named)
    assert query.begins() == first
    assert query.behind(first) == ["b", "c", "x", "y"]
    later = json.dumps({f"{topic}-partition-0": str(at[0]), topic: "earliest"})
    with pytest.raises(
        InvalidInput,
        match=rf"begins after .* on {topic}.*, but the subscription 'job' exists already and stands at {at[0]}",
    ):
        run(topic=topic, startingOffsets=later).begins()


def test_a_start_behind_the_end_is_refused_and_the_next_entry_is_not(
    run: Run, ours: Client, make_topic: MakeTopic
) -> None:
    """An entry of another cluster, or of the topic that had this name before: all that comes would count as read."""
    topic = make_topic("behind")
    empty = run(topic=topic, startingOffsets="earliest").begins().topics[topic].entry

    def starts(where: EntryId, subscription: str = "named") -> list[str]:
        query = run(topic=topic, subscription=subscription, startingOffsets=json.dumps({topic: str(where)}))
        return query.behind(query.plan.first())

    def table(where: EntryId) -> list[str]:
        brokers = run(topic=topic).brokers
        return read(brokers, batch_ranges(brokers, Boundary("entries", entries={topic: where}), Boundary("latest")))

    def refused(last: EntryId, *places: EntryId) -> None:
        for place in places:
            for begin in (starts, table):
                with pytest.raises(InvalidInput, match=f"begins at {place} on {topic}, but the topic ends with {last}"):
                    begin(place)

    def up_to(where: EntryId) -> list[str]:
        brokers = run(topic=topic).brokers
        return read(brokers, batch_ranges(brokers, Boundary("earliest"), Boundary("entries", entries={topic: where})))

    refused(empty, EntryId(10**9, 0))
    _, last = write(ours, topic, "a", "b")
    after = EntryId(last.ledger, last.entry + 1)
    refused(last, EntryId(last.ledger, last.entry + 2), EntryId(last.ledger + 1_000, 0))
    assert starts(after) == table(after) == []
    for behind in (after, EntryId(last.ledger + 1_000, 0)):
        with pytest.raises(InvalidInput, match=f"endingOffsets ends at {behind} on {topic}, but the topic .* {last}"):
            up_to(behind)
    assert up_to(last) == ["a", "b"]
    with ours.producer(topic) as producer:
        held = transaction(ours, topic)
        for _ in range(2):
            producer.send_record(b"open", held)
    inside = EntryId(last.ledger, last.entry + 2)
    assert starts(inside, "inside") == table(inside) == []
    assert up_to(inside) == ["a", "b"]
    end(ours, held, commit=True)
    assert starts(after) == table(after) == ["open", "open"]
    assert starts(inside, "inside") == table(inside) == ["open"]


def test_a_time_finds_what_was_published_from_then_on(run: Run, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("timed")
    places, moments = [], []
    for value in ("a", "b", "c", "d"):
        moments.append(int(time.time() * 1000))
        places += write(ours, topic, value)
        time.sleep(0.02)
    brokers = run(topic=topic, startingOffsets="earliest").brokers
    for moment, place in zip(moments, places, strict=True):
        found = brokers.before_time(topic, moment)
        assert found == EntryId(place.ledger, place.entry - 1)


def test_what_lies_before_the_start_is_released_and_the_start_is_kept(
    run: Run, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("released")
    places = write(ours, topic, "a", "b", "c")
    query = run(topic=topic, startingOffsets="earliest")
    first = query.begins()
    done = query.latest(first)
    assert done.topics == {topic: Position(places[-1])}
    with ours.subscription(topic, "job", initial="earliest") as cursor:
        stands = cursor.last_message_id()[1]
        assert stands is not None
        assert stands.entry == -1
    query.latest(done)
    with ours.subscription(topic, "job", initial="earliest") as cursor:
        assert cursor.last_message_id()[1] == places[1]


def test_a_missing_topic_is_named(run: Run) -> None:
    with pytest.raises(TopicMissing, match="no-such-topic does not exist"):
        run(topic="no-such-topic").begins()


def test_a_cut_range_ends_with_a_message_behind_aborted_entries_and_ledgers(
    run: Run, ours: Client, make_topic: MakeTopic, admin: Admin
) -> None:
    topic = make_topic("cut")
    write(ours, topic, "a")
    gone = transaction(ours, topic)
    with ours.producer(topic) as producer:
        for _ in range(5):
            producer.send_record(b"aborted", gone)
    end(ours, gone, commit=False)
    write(ours, topic, "b")
    admin("PUT", topic, "unload")
    write(ours, topic, "c", "d")
    query = run(topic=topic, startingOffsets="earliest", maxEntriesPerTrigger="2")
    position, batches = query.plan.first(), []
    while (done := query.latest(position)) != position:
        batches.append(query.read(position, done))
        position = done
    assert [value for batch in batches for value in batch] == ["a", "b", "c", "d"]
    assert max(map(len, batches)) <= 2


def test_a_batch_covers_what_lies_between_its_boundaries(pulsar: Any, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("bounded")
    at = write(ours, topic, "a", "b", "c", "d")

    def between(**options: str) -> list[str]:
        parsed = parse_options({"service.url": pulsar.service_url, "topic": topic} | options, "batch")
        brokers = PulsarBrokers(parsed)
        return read(brokers, batch_ranges(brokers, parsed.start, parsed.end))

    assert between() == ["a", "b", "c", "d"]
    assert between(startingOffsets=json.dumps({topic: str(at[1])}), endingOffsets=json.dumps({topic: str(at[2])})) == [
        "b",
        "c",
    ]
    assert between(startingOffsets="latest") == []
    assert between(startingTime="0", endingTime="1") == []
    assert between(endingTime=str(int(time.time() * 1000) + 60_000)) == ["a", "b", "c", "d"]


def test_a_pattern_takes_topics_as_they_appear(run: Run, ours: Client, make_topic: MakeTopic) -> None:
    stem = f"pattern{uuid.uuid4().hex[:8]}"
    one, hidden = make_topic(f"{stem}-a", 2), make_topic(f"__{stem}")
    query = run(topicsPattern=f"(__)?{stem}-.*", startingOffsets="latest")
    first = query.begins()
    assert sorted(first.topics) == [f"{one}-partition-0", f"{one}-partition-1"]
    assert hidden not in first.topics
    write(ours, f"{one}-partition-1", "a")
    other = make_topic(f"{stem}-b")
    write(ours, other, "b")
    joined = query.latest(first)
    assert query.read(first, joined) == ["a"]
    assert query.behind(joined) == ["b"]


def test_partitions_whose_topic_is_gone_do_not_keep_a_pattern_from_its_other_topics(
    start_pulsar: Callable[..., LocalPulsar], caplog: pytest.LogCaptureFixture
) -> None:
    """Pulsar 4.2.4 lists them, says that each is a topic without partitions, and refuses to load it."""
    broker = start_pulsar()
    whole = create_topic(broker.admin_url, "left", partitions=2)
    plain = create_topic(broker.admin_url, "plain")
    left = f"{whole}-partition-1"
    with Client(Cluster(broker.service_url)) as client:
        write(client, left, "a")
        write(client, plain, "b")
        zookeeper = KazooClient(broker.zookeeper)
        zookeeper.start()
        zookeeper.delete(f"/admin/partitioned-topics/public/default/persistent/{whole.rpartition('/')[2]}")
        zookeeper.stop()
        zookeeper.close()

        def is_refused() -> bool:
            httpx.put(f"{broker.admin_url}/admin/v2/{left.replace('://', '/')}/unload", timeout=30)
            try:
                client.subscription(left, "asks", initial="earliest").close()
            except RefusedForGood:
                return True
            return False

        until(is_refused, "the broker goes on to load the partition", pause_s=0.3)
        listed = [table.topic for table in tables(client, "public/default")]
        assert {left, plain} <= set(listed)
        assert whole not in listed
    given = {"service.url": broker.service_url, "topicsPattern": "public/default/.*", "startingOffsets": "earliest"}
    query = Query(parse_options(given | {"subscription": "job"}, "stream"))
    start = query.plan.first()
    end = query.latest(start)
    assert query.read(start, end) == ["b"]
    with pytest.raises(RefusedForGood, match="metadata not found"):  # a query that has read it
        query.latest(Offsets({**end.topics, left: Position(EntryId(1, 0))}))
    assert [f"The pattern selects {left}" in line for line in caplog.messages].count(True) == 1
    query.brokers.close()


@pytest.mark.soak
def test_20_000_aborted_entries_at_the_tail_are_waited_out(
    run: Run, pulsar: Any, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("tail")
    (before,) = write(ours, topic, "before")
    gone = transaction(ours, topic, ttl_ms=600_000)
    (chunk,) = BatchEncoder().chunks(pa.record_batch({"value": [b"aborted"]}))
    with ours.producer(topic) as producer:
        for _ in range(20_000):
            producer.send(chunk, gone)
    options = {"topic": topic, "startingOffsets": "earliest", "admin.url": pulsar.admin_url, "minPartitions": "4"}
    query = run(**options)
    start = query.plan.first()
    done = query.latest(start)
    assert done.topics[topic] == Position(before), "an open transaction"
    end(ours, gone, commit=False)
    assert query.latest(start) == done
    assert query.read(start, done) == ["before"]
    write(ours, topic, "behind")
    until_behind = query.latest(done)
    parts = query.plan.ranges(done, until_behind)
    assert len(parts) == 1, "there is one message behind the start, wherever the range is cut"
    assert query.read(done, until_behind) == ["behind"]
    assert [str(part) for part in run(**options).plan.ranges(done, until_behind)] == [str(part) for part in parts]
