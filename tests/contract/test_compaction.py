"""What compaction makes of a topic that transactions write to: which value of a key is left for readers."""

from __future__ import annotations

import httpx
import pulsar as official
import pyarrow as pa

from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.txn import TxnId
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.contract.test_transactions import end, last_word, transaction
from tests.waiting import until


def send(client: Client, topic: str, txn: TxnId | None, **rows: bytes | None) -> None:
    """Write a value of each key, in one batch."""
    batch = pa.record_batch({"value": pa.array(rows.values(), pa.binary()), "key": list(rows)})
    with client.producer(topic) as producer:
        for chunk in BatchEncoder().chunks(batch):
            producer.send(chunk, txn)
        producer.flush()


def compact(pulsar: Running, topic: str) -> None:
    where = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"
    httpx.put(where, timeout=30).raise_for_status()
    until(lambda: httpx.get(where, timeout=30).json()["status"] == "SUCCESS", "the topic was not compacted")


def table(pulsar: Running, topic: str, *, compacted: bool = True) -> dict[str, bytes]:
    """The newest value of each key, by the official client's reader."""
    found: dict[str, bytes] = {}
    client = official.Client(pulsar.service_url)
    try:
        reader = client.create_reader(topic, official.MessageId.earliest, is_read_compacted=compacted)
        while reader.has_message_available():
            message = reader.read_next(30_000)
            if message.has_null_value():
                found.pop(message.partition_key(), None)
            else:
                found[message.partition_key()] = message.data()
    finally:
        client.close()
    return found


def test_what(pulsar: Running, ours: Client, make_topic: MakeTopic, quiet: int) -> None:
    topic = make_topic("p-compact")
    a = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, a, k0=b"a", k1=b"a", k2=b"a", k3=b"a")
    end(ours, a, commit=True)
    b = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, b, k0=b"aborted", k4=b"aborted", k3=None)
    end(ours, b, commit=False)
    c = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, c, k1=b"c", k2=None)
    end(ours, c, commit=True)
    print("before", table(pulsar, topic), table(pulsar, topic, compacted=False))
    compact(pulsar, topic)
    print("compacted", table(pulsar, topic), table(pulsar, topic, compacted=False))
    d = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, d, k0=b"open", k1=None)
    e = transaction(ours, topic, coordinator_index=quiet)
    send(ours, topic, e, k0=b"e", k5=b"e")
    end(ours, e, commit=True)
    compact(pulsar, topic)
    print("compacted with open", table(pulsar, topic))
    end(ours, d, commit=False)
    print("aborted then", table(pulsar, topic))
    compact(pulsar, topic)
    print("compacted", table(pulsar, topic), table(pulsar, topic, compacted=False))
    last_word(ours, topic)
    compact(pulsar, topic)
    print("compacted", table(pulsar, topic), table(pulsar, topic, compacted=False))
    httpx.put(f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload", timeout=30)
    print("unloaded", table(pulsar, topic), table(pulsar, topic, compacted=False))
    client = official.Client(pulsar.service_url)
    view = client.create_table_view(topic, "view")
    seen: dict[str, bytes] = {}
    view.for_each(lambda k, v: seen.__setitem__(k, v))
    print("view", seen)
    client.close()
