"""Facts that need a broker of the test's own: crashes, limits, and what a role may do."""

from __future__ import annotations

import base64
import hmac
import json
import os
import signal
from collections.abc import Callable

import httpx
import pytest

from eos.config import Cluster, Credentials
from eos.errors import ConnectionLost, InvalidInput, Refused, TopicMissing, Unanswered
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from tests.conftest import create_topic
from tests.contract.test_transactions import code_of, end, transaction
from tests.waiting import PATIENCE_S, in_a_hurry

StartPulsar = Callable[..., LocalPulsar]
KEY = b"0123456789abcdef0123456789abcdef"


def token(role: str) -> str:
    """Sign a JSON web token for a role, HS256."""

    def text(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    signed = ".".join(text(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {"sub": role}))
    return f"{signed}.{text(hmac.digest(KEY, signed.encode(), 'sha256'))}"


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


def test_only_the_principal_that_opened_a_transaction_finds_it(start_pulsar: StartPulsar) -> None:
    administrator = Credentials("token", token("admin"))
    broker = start_pulsar(
        coordinators=1,
        credentials=administrator,
        settings={
            "authenticationEnabled": True,
            "authorizationEnabled": True,
            "superUserRoles": "admin",
            "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
            "tokenSecretKey": f"data:;base64,{base64.b64encode(KEY).decode()}",
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{administrator.data}",
        },
    )

    def client(credentials: Credentials) -> Client:
        return Client(Cluster(broker.service_url, credentials, request_timeout_s=PATIENCE_S))

    with client(Credentials("token", "wrong")) as stranger, pytest.raises(Refused, match="AuthenticationError"):
        stranger.coordinators()

    bearer = {"Authorization": f"Bearer {administrator.data}"}

    def grant(role: str, namespace: str, *actions: str) -> None:
        path = f"{broker.admin_url}/admin/v2/namespaces/{namespace}/permissions/{role}"
        httpx.post(path, headers=bearer, json=actions, timeout=30).raise_for_status()

    for role in ("alice", "bob"):
        grant(role, "public/default", "produce", "consume")
    with client(Credentials("token", token("alice"))) as alice:
        for ask in (alice.coordinators, lambda: alice.coordinator(0)):
            with pytest.raises(InvalidInput, match="grant-permission pulsar/system --actions consume"):
                ask()
    for role in ("alice", "bob"):
        grant(role, "pulsar/system", "consume")
    with Admin(broker.admin_url, administrator) as admin:
        assert admin.version()
    with (
        client(Credentials("token", token("alice"))) as alice,
        client(Credentials("token", token("bob"))) as bob,
        client(administrator) as superuser,
    ):
        txn = transaction(alice)
        assert code_of(lambda: end(bob, txn, commit=False)) == "TransactionNotFound"
        assert code_of(lambda: end(alice, txn, commit=False)) == "OK"
        second = transaction(alice)
        assert code_of(lambda: end(superuser, second, commit=False)) == "OK"
        topic = "persistent://public/default/p-alice"
        alice.ensure_topic(topic)
        with alice.producer(topic) as producer:
            assert isinstance(producer.send_record(b"x", None), MessageId)
