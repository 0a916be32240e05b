"""Facts that need a broker of the test's own: crashes and limits."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from eos.config import Cluster
from eos.errors import ConnectionLost, InvalidInput, TopicMissing, Unanswered
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from tests.conftest import create_topic
from tests.contract.test_transactions import end, transaction
from tests.waiting import PATIENCE_S, in_a_hurry

StartPulsar = Callable[..., LocalPulsar]


def test_after_a_broker_crash_the_next_call_connects_again_and_wakes_the_coordinator(
    start_pulsar: StartPulsar,
) -> None:
    broker = start_pulsar(coordinators=1)
    topic = create_topic(broker.admin_url, "p-crash")
    with Client(Cluster(broker.service_url, request_timeout_s=150)) as client:
        txn = transaction(client, topic, ttl_ms=3_600_000)
        reader = client.reader(topic)
        producer = client.producer(topic)
        producer.send_record(b"before the crash", txn)
        assert reader.read(0.1) is None
        empty = transaction(client)
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGSTOP)  # else it may answer before it is killed
        with pytest.raises(ConnectionLost, match="commit transaction"):
            client.coordinator(0).end(empty, commit=True, sent=broker.kill)
        with pytest.raises(ConnectionLost):
            producer.send_record(b"during the crash", txn)
        broker.launch()  # this client alone connects to the coordinator
        fresh = client.producer(topic)
        fresh.send_record(b"after the crash", txn)
        fresh.close()
        end(client, txn, commit=True)
        read: list[bytes | None] = []
        while len(read) < 2:
            message = reader.read(PATIENCE_S)
            assert message is not None
            read.append(message.data)
        assert read == [b"before the crash", b"after the crash"]


def test_a_full_coordinator_does_not_answer_and_a_broker_may_refuse_to_create_topics(
    start_pulsar: StartPulsar,
) -> None:
    broker = start_pulsar(
        coordinators=1, settings={"maxActiveTransactionsPerCoordinator": 1, "allowAutoTopicCreation": False}
    )
    with Client(Cluster(broker.service_url)) as client:
        first = transaction(client)
        with in_a_hurry(client, 1), pytest.raises(Unanswered, match="maxActiveTransactionsPerCoordinator"):
            client.coordinator(0).new_transaction(1000)
        end(client, first, commit=False)

        name = "persistent://public/default/p-not-created"
        with pytest.raises(InvalidInput, match="pulsar-admin topics create"):
            client.ensure_topic(name)
        with pytest.raises(TopicMissing):
            client.producer(name)
        with pytest.raises(TopicMissing):
            client.partitions(name)
