"""Facts that need a broker of the test's own: crashes, limits, and the recovery of topics."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eos.config import Cluster
from eos.errors import ConnectionLost, InvalidInput, TopicMissing, Unanswered
from eos.local import LocalPulsar, jars
from eos.preflight.recovery import SETTING, danger
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.clients import end, transaction
from tests.conftest import VERSION, create_topic
from tests.java_peer import JavaPeer
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


# ---- topics that are recovered side by side


def test_a_topic_that_is_recovered_beside_another_misses_its_snapshot(tmp_path: Path) -> None:
    """When Pulsar has mended it, this fails, and `eos.preflight.recovery` can stop warning of that version."""
    source = Path(__file__).with_name("SnapshotRace.java")
    with JavaPeer(source, tmp_path, jars.classpath(version=VERSION), flags=("-Xmx256m",)) as race:
        assert race.answer("beside") == "null"
        assert race.answer("first") == "snapshot-0"
        assert race.answer("afterwards") == "snapshot-1"


def test_a_broker_started_by_us_recovers_topics_one_after_another(pulsar: Any) -> None:
    with Admin(pulsar.admin_url) as admin:
        assert admin.setting(SETTING) == "1"
        assert admin.setting("noSuchSetting") is None
        assert danger(admin) is None
