"""A topic that takes little a second: receipts come slowly, and keep coming."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx

from eos.config import Cluster
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import Chunk
from tests.contract.conftest import Running
from tests.waiting import until

RATE = 200_000  # bytes a second
TIMEOUT_S = 7.0
CHUNK = Chunk(messages=1, payload=b"x" * 100_000, uncompressed_size=100_000, rows_bytes=100_000, compression="none")


def test_a_batch_that_takes_longer_than_the_time_out_passes(pulsar: Running, make_topic: Callable[..., str]) -> None:
    topic = make_topic("slow")
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/publishRate"
    limit = {"publishThrottlingRateInByte": RATE, "publishThrottlingRateInMsg": -1}
    httpx.post(url, json=limit, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).text.find(str(RATE)) >= 0)
    with Client(Cluster(pulsar.service_url)) as client:
        coordinator = client.coordinator(0)
        txn = coordinator.new_transaction(60_000)
        coordinator.add_partitions(txn, [topic])
        producer = client.producer(topic)
        producer._timeout_s = TIMEOUT_S
        began = time.monotonic()
        for _ in range(20):  # 10 s at that rate
            producer.send(CHUNK, txn)
        producer.flush()
        assert time.monotonic() - began > TIMEOUT_S
        coordinator.end(txn, commit=False)
