"""Readers and holds on a real broker."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pulsar as official
import pyarrow as pa
import pytest

from eos.config import COMPRESSIONS, Compression
from eos.errors import ConnectionLost, NetworkError, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.routing import Sorted, part_by_sticky_key
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.waiting import PATIENCE_S


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_batch_is_read_message_by_message(ours: Client, make_topic: MakeTopic, compression: Compression) -> None:
    topic = make_topic("p-batch")
    rows = pa.record_batch({"value": [b"%d" % row * 20 for row in range(500)], "key": ["k"] * 500})
    txn = transaction(ours, topic)
    with ours.producer(topic) as producer:
        for chunk in BatchEncoder(compression, target_bytes=4000).chunks(rows):
            producer.send(chunk, txn)
    end(ours, txn, commit=True)
    reader = ours.reader(topic)
    read = [reader.read(PATIENCE_S) for _ in range(500)]
    assert [message.data for message in read if message is not None] == rows.column("value").to_pylist()
    assert {message.key for message in read if message is not None} == {b"k"}
    assert reader.read(0.1) is None


def test_the_last_message_id_is_the_last_readable_one(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-last")
    reader = ours.reader(topic)
    assert reader.last_message_id() == MessageId(-1, -1)
    with ours.producer(topic) as producer:
        plain = producer.send_record(b"plain", None)
        aborted = transaction(ours, topic)
        producer.send_record(b"aborted", aborted)
        end(ours, aborted, commit=False)
        assert reader.last_message_id() == plain
        left_open = transaction(ours, topic)
        producer.send_record(b"open", left_open)
        assert reader.last_message_id() == plain
    end(ours, left_open, commit=False)


def test_a_reader_goes_on_after_its_topic_was_unloaded(pulsar: Running, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-unload")
    rows = pa.record_batch({"value": [b"1", b"2", b"3"]})
    with ours.producer(topic) as producer:
        for chunk in BatchEncoder().chunks(rows):
            producer.send(chunk, None)
    reader = ours.reader(topic)
    first = reader.read(PATIENCE_S)
    httpx.put(f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload", timeout=30).raise_for_status()
    with ours.producer(topic) as producer:
        producer.send_record(b"4", None)
    rest: list[bytes | None] = []
    while len(rest) < 3:
        try:
            message = reader.read(PATIENCE_S)
        except ConnectionLost:  # the unloading came while we waited
            continue
        assert message is not None
        rest.append(message.data)
    assert first is not None
    assert [first.data, *rest] == [b"1", b"2", b"3", b"4"]


def test_a_producer_of_an_unloaded_topic_is_closed_for_good(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-unload-producer")
    producer = ours.producer(topic)
    producer.send_record(b"1", None)
    httpx.put(f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload", timeout=30).raise_for_status()
    with pytest.raises(NetworkError, match="closed by the broker"):
        producer.send_record(b"2", None)


def test_a_hold_begins_at_the_earliest_and_lets_go_of_what_it_acknowledges(
    ours: Client, admin: Admin, pulsar: Running, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-hold")
    with ours.producer(topic) as producer:
        ids = [producer.send_record(b"%d" % record, None) for record in range(4)]
    hold = ours.hold(topic, "keep")
    assert admin.subscriptions(topic) == ("keep",)
    assert backlog(pulsar, topic) == 4
    hold.acknowledge(ids[1])
    assert backlog(pulsar, topic) == 2
    hold.close()
    assert backlog(pulsar, topic) == 2
    again = ours.hold(topic, "keep")
    again.acknowledge(ids[3])
    assert backlog(pulsar, topic) == 0
    again.delete()
    assert admin.subscriptions(topic) == ()


def test_two_holds_under_one_name_do_not_shut_each_other_out(
    make_client: Callable[[], Client], pulsar: Running, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-two-holds")
    first, second = make_client().hold(topic, "keep"), make_client().hold(topic, "keep")
    with make_client().producer(topic) as producer:
        ids = [producer.send_record(b"%d" % record, None) for record in range(2)]
    second.acknowledge(ids[0])
    first.acknowledge(ids[1])
    assert backlog(pulsar, topic) == 0


def test_whether_a_subscription_is_held_is_known_and_nothing_changes_for_who_holds_it(
    make_client: Callable[[], Client], pulsar: Running, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-held")
    with make_client().producer(topic) as producer:
        ids = [producer.send_record(b"%d" % record, None) for record in range(2)]
    holder, asker = make_client(), make_client()
    hold = holder.hold(topic, "keep")
    assert asker.is_held(topic, "keep")
    hold.acknowledge(ids[0])
    assert backlog(pulsar, topic) == 1
    hold.close()
    assert not asker.is_held(topic, "keep")
    again = holder.hold(topic, "keep")
    assert asker.is_held(topic, "keep")
    again.acknowledge(ids[1])
    assert backlog(pulsar, topic) == 0


def test_readers_holds_and_lookups_create_no_topic(ours: Client) -> None:
    name = "persistent://public/default/p-not-there"
    with pytest.raises(TopicMissing):
        ours.reader(name).read(PATIENCE_S)
    with pytest.raises(TopicMissing):
        ours.hold(name, "keep")
    with pytest.raises(TopicMissing):
        ours.partitions(name)


def test_partitions_of_topics(ours: Client, make_topic: MakeTopic) -> None:
    assert ours.partitions(make_topic("p-plain")) == 0
    parts = make_topic("p-parts", partitions=3)
    assert ours.partitions(parts) == 3
    assert ours.partitions(f"{parts}-partition-1") == 0


def backlog(pulsar: Running, topic: str) -> int:
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/stats?getPreciseBacklog=true"
    stats = httpx.get(url, timeout=30).json()
    number = stats["subscriptions"]["keep"]["msgBacklog"]
    assert isinstance(number, int)
    return number


# ---- Key_Shared


KEYS, TIMES = 50, 3


def test_the_rows_of_a_key_stay_in_order_on_one_consumer(
    theirs: official.Client, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-key-shared")
    keys = [f"key {number}".encode() for number in range(KEYS - 1)] + [b"\xff"]
    values = [f"{turn}" for turn in range(TIMES) for _ in keys]
    rows = pa.record_batch({"value": values, "key": keys * TIMES})
    parts = part_by_sticky_key(Sorted(rows, [0], [rows.num_rows]))
    seen: list[dict[str, list[str]]] = [{}, {}]
    consumers = [theirs.subscribe(topic, "shared", official.ConsumerType.KeyShared) for _ in seen]
    with ours.producer(topic) as producer:
        for _, chunk in BatchEncoder(keyed=True).chunks_of_parts(parts.rows, parts.ends):
            producer.send(chunk, None)
    while sum(len(got) for one in seen for got in one.values()) < len(values):
        for consumer, one in zip(consumers, seen, strict=True):
            try:
                message = consumer.receive(200)
            except official.Timeout:
                continue
            one.setdefault(message.partition_key(), []).append(message.data().decode())
            consumer.acknowledge(message)
    assert seen[0].keys().isdisjoint(seen[1])
    assert seen[0]
    assert seen[1]
    assert len(seen[0] | seen[1]) == KEYS
    assert all(got == ["0", "1", "2"] for one in seen for got in one.values())
