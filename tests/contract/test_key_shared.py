"""Key_Shared subscriptions of the official client, on frames whose rows share their key."""

from __future__ import annotations

import pulsar as official
import pyarrow as pa

from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.routing import Sorted, part_by_sticky_key
from tests.conftest import MakeTopic
from tests.contract.conftest import Running

KEYS, TIMES = 50, 3


def test_the_rows_of_a_key_stay_in_order_on_one_consumer(pulsar: Running, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-key-shared")
    keys = [f"key {number}".encode() for number in range(KEYS - 1)] + [b"\xff"]
    values = [f"{turn}" for turn in range(TIMES) for _ in keys]
    rows = pa.record_batch({"value": values, "key": keys * TIMES})
    parts = part_by_sticky_key(Sorted(rows, [0], [rows.num_rows]))
    client = official.Client(pulsar.service_url)
    seen: list[dict[str, list[str]]] = [{}, {}]
    try:
        consumers = [client.subscribe(topic, "shared", official.ConsumerType.KeyShared) for _ in seen]
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
    finally:
        client.close()
    assert seen[0].keys().isdisjoint(seen[1])
    assert seen[0]
    assert seen[1]
    assert len(seen[0] | seen[1]) == KEYS
    assert all(got == ["0", "1", "2"] for one in seen for got in one.values())
