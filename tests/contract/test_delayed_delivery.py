"""Delivery at a time inside transactions: which subscriptions wait for it, and what an abort leaves."""

from __future__ import annotations

import time

import httpx
import pulsar as official
import pyarrow as pa
import pytest

from eos.errors import RefusedForGood
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.routing import Sorted, part_by_delivery_time
from eos.pulsar.wire.txn import TxnId
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.waiting import until

DELAY_MS = 3_000
TTL_MS = 60_000
PATIENCE_MS = 60_000
TICK_MS = 1_000
"""How much before its time the broker may deliver: `delayedDeliveryTickTimeMillis`, unless
`isDelayedDeliveryDeliverAtTimeStrict` is set."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def send(client: Client, topic: str, values: list[bytes], times: list[int | None], txn: TxnId | None) -> None:
    rows = pa.record_batch(
        {
            "value": values,
            "key": [b"k%d" % place for place in range(len(values))],
            "deliver_at": pa.array(times, pa.int64()),
        }
    )
    parts = part_by_delivery_time(Sorted(rows, [0], [rows.num_rows]))
    with client.producer(topic) as producer:
        for _, chunk in BatchEncoder().chunks_of_parts(parts.rows, parts.ends):
            producer.send(chunk, txn)


def receive(consumer: official.Consumer, count: int) -> dict[bytes, int]:
    """Return when each of so many messages came, in ms, and see that no others come at once."""
    came: dict[bytes, int] = {}
    for _ in range(count):
        message = consumer.receive(PATIENCE_MS)
        came[message.data()] = now_ms()
        consumer.acknowledge(message)
    with pytest.raises(official.Timeout):
        consumer.receive(500)
    assert len(came) == count
    return came


def test_shared_subscriptions_wait_for_the_time(theirs: official.Client, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-delayed")
    kinds = [official.ConsumerType.Shared, official.ConsumerType.KeyShared]
    consumers = [theirs.subscribe(topic, f"s{place}", kind) for place, kind in enumerate(kinds)]
    aborted, committed, open_longer = (transaction(ours, topic) for _ in range(3))
    due = now_ms() + DELAY_MS
    values = [b"soon", b"late", b"now", b"late too", b"past", b"negative"]
    send(ours, topic, values, [due, due + 1_000, None, due + 1_000, 1_000, -5], committed)
    send(ours, topic, [b"aborted", b"aborted now"], [due, None], aborted)
    send(ours, topic, [b"committed after its time"], [due - DELAY_MS], open_longer)
    end(ours, aborted, commit=False)
    end(ours, committed, commit=True)
    end(ours, open_longer, commit=True)
    came = [receive(consumer, 7) for consumer in consumers]
    for one in came:
        assert one.keys() == {*values, b"committed after its time"}
        assert one[b"soon"] >= due - TICK_MS
        assert min(one[b"late"], one[b"late too"]) >= due + 1_000 - TICK_MS


def test_others_do_not_wait(theirs: official.Client, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-not-delayed")
    txn = transaction(ours, topic)
    send(ours, topic, [b"in an hour"], [now_ms() + 3_600_000], txn)
    end(ours, txn, commit=True)
    for kind in (official.ConsumerType.Exclusive, official.ConsumerType.Failover):
        consumer = theirs.subscribe(topic, f"{kind}", kind, initial_position=official.InitialPosition.Earliest)
        assert consumer.receive(PATIENCE_MS).data() == b"in an hour"
    reader = theirs.create_reader(topic, official.MessageId.earliest)
    assert reader.read_next(PATIENCE_MS).data() == b"in an hour"


def test_a_subscription_that_begins_later_finds_them_delayed_too(
    theirs: official.Client, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-delayed-later")
    due = now_ms() + DELAY_MS
    for value, commit in ((b"delayed", True), (b"aborted", False)):
        txn = transaction(ours, topic)
        send(ours, topic, [value], [due], txn)
        end(ours, txn, commit=commit)
    send(ours, topic, [b"plain"], [None], None)
    shared = official.ConsumerType.Shared
    consumer = theirs.subscribe(topic, "s", shared, initial_position=official.InitialPosition.Earliest)
    came = receive(consumer, 2)
    with pytest.raises(official.Timeout):
        consumer.receive(max(0, due - now_ms()) + 1_000)
    assert came.keys() == {b"plain", b"delayed"}
    assert came[b"delayed"] >= due - TICK_MS


def test_a_topic_that_allows_shorter_delays_alone_refuses_the_frame(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("p-delayed-least")
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/delayedDelivery"
    policy = {"active": True, "tickTime": 1_000, "maxDeliveryDelayInMillis": 2_000}
    httpx.post(url, json=policy, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).json() == policy)
    txn = transaction(ours, topic)
    try:
        with pytest.raises(RefusedForGood, match="Exceeds max allowed delivery delay of 2000 milliseconds"):
            send(ours, topic, [b"delayed"], [now_ms() + 60_000], txn)
    finally:
        end(ours, txn, commit=False)
