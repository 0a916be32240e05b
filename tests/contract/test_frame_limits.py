"""A topic that takes smaller frames than its broker: what the broker says, and what the writer makes of it."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pyarrow as pa
import pytest

from eos.config import Cluster
from eos.delivery.producers import FreshProducers
from eos.delivery.row_writer import BatchTransaction, RowWriter, WriteSettings, send_all
from eos.errors import FrameTooLarge, RefusedForGood
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from tests.contract.conftest import Running
from tests.reading import values_of
from tests.waiting import PATIENCE_S, until

LIMIT = 2000
VALUES = [b"%05d-" % number + b"x" * 94 for number in range(1000)]


@pytest.fixture
def topic(pulsar: Running, make_topic: Callable[..., str]) -> str:
    """Two partitions whose frames must be smaller than LIMIT bytes."""
    name = make_topic("small-frames", partitions=2)
    url = f"{pulsar.admin_url}/admin/v2/{name.replace('://', '/')}/maxMessageSize"
    httpx.post(url, json=LIMIT, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).text == str(LIMIT))
    return name


def write(client: Client, topic: str, txn: TxnId) -> None:
    settings = WriteSettings(topic, "murmur3", "none", 32 << 20)
    writer = RowWriter(settings, BatchTransaction(txn, 0), FreshProducers(client, 32 << 20))
    send_all(writer, [pa.RecordBatch.from_pydict({"value": VALUES, "key": [value[:5] for value in VALUES]})])
    try:
        writer.finish()
    except BaseException:
        writer.abandon()
        raise


def test_each_try_cuts_its_frames_smaller_until_the_topic_takes_them(pulsar: Running, topic: str) -> None:
    client = Client.shared(Cluster(pulsar.service_url, request_timeout_s=PATIENCE_S))
    coordinator = client.coordinator(0)
    for _ in range(5):
        txn = coordinator.new_transaction(60_000)
        try:
            write(client, topic, txn)
        except FrameTooLarge:
            coordinator.end(txn, commit=False)
            continue
        coordinator.end(txn, commit=True)
        break
    assert client.frame_limits.of(topic) is not None
    assert sorted(values_of(pulsar.service_url, topic)) == sorted(value.decode() for value in VALUES)


def test_a_message_that_is_too_large_alone_is_invalid_input(ours: Client, topic: str) -> None:
    producer = ours.producer(f"{topic}-partition-0")
    with pytest.raises(RefusedForGood, match=r"of 3000 bytes, is more than the topic allows.* set-max-message-size"):
        producer.send_record(b"x" * 3000, None)
