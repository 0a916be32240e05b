"""The rights of a role on a broker that demands tokens, and those that a job needs: docs/how-to/rights.md.

Each test has roles of its own, and grants to them alone.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pyarrow as pa
import pytest

from eos.bookkeeper import Bookies, LedgerReader
from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from eos.by_name.data_source import PulsarDataSource
from eos.commit.control_topic import control_topic
from eos.commit.owner import Owner
from eos.config import Cluster, Credentials
from eos.errors import InvalidInput, Refused, RefusedForGood
from eos.history.segments import segments_of
from eos.local import LocalPulsar
from eos.local.access import credentials, require_tokens, signed
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from eos.source.batch import PulsarReader
from tests.clients import end, transaction
from tests.conftest import START_S, VERSION
from tests.contract.test_transactions import code_of
from tests.waiting import PATIENCE_S

BASE = "persistent://public/default"
PRODUCE, CONSUME, BOTH = ("produce",), ("consume",), ("produce", "consume")


@dataclass(frozen=True)
class Guarded:
    """A broker that demands tokens, and the key that signs them."""

    broker: LocalPulsar
    key: bytes

    def credentials(self, role: str) -> Credentials:
        return Credentials("token", signed({"sub": role}, self.key))

    def client(self, role: str) -> Client:
        return Client(Cluster(self.broker.service_url, self.credentials(role), request_timeout_s=PATIENCE_S))

    def make(self, topic: str) -> str:
        """Make a topic of public/default; return its full name."""
        self._ask("PUT", f"persistent/public/default/{topic}")
        return f"{BASE}/{topic}"

    def grant(self, role: str, where: str, actions: tuple[str, ...]) -> None:
        """Args: where: a full topic name, or tenant/namespace."""
        path = where.replace("://", "/") if "://" in where else f"namespaces/{where}"
        if actions:
            self._ask("POST", f"{path}/permissions/{role}", list(actions))

    def make_administrator(self, role: str) -> None:
        """Make it one of the administrators of the tenant public."""
        self._ask("POST", "tenants/public", {"adminRoles": [role], "allowedClusters": ["standalone"]})

    def _ask(self, method: str, path: str, body: object = None) -> None:
        bearer = {"Authorization": f"Bearer {self.credentials('admin').data}"}
        url = f"{self.broker.admin_url}/admin/v2/{path}"
        httpx.request(
            method, url, headers=bearer, json=body, timeout=PATIENCE_S, follow_redirects=True
        ).raise_for_status()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    home = tmp_path_factory.mktemp("guarded")
    settings = require_tokens(home)
    broker = LocalPulsar(
        version=VERSION, settings=settings, coordinators=1, credentials=credentials(home), start_timeout_s=START_S
    )
    broker.start()
    yield Guarded(broker, Path(home / "token.key").read_bytes())
    broker.stop()


@pytest.fixture
def role() -> str:
    return f"role-{uuid.uuid4().hex[:8]}"


def write_a_batch(client: Client, name: str, topic: str) -> None:
    """All that a sink asks of the brokers for a batch."""
    log = control_topic(name, topic)
    client.partitions(topic)
    client.schema(topic)
    client.ensure_topic(log)
    owner = Owner(client, name, log)
    owner.take_over("query", "run")
    coordinator = owner.coordinator()
    txn = coordinator.new_transaction(60_000)
    coordinator.add_partitions(txn, [topic])
    with client.producer(topic) as producer:
        producer.send_record(b"row", txn)
    coordinator.end(txn, commit=True)


@pytest.mark.parametrize(
    ("data", "log", "system", "lacks"),
    [
        (PRODUCE, BOTH, CONSUME, ""),
        ((), BOTH, CONSUME, "partitions of TOPIC: .*grant-permission TOPIC --role ROLE --actions produce,consume"),
        (CONSUME, BOTH, CONSUME, "producer on TOPIC: .*lacks the permission to produce: .*--actions produce$"),
        (PRODUCE, (), CONSUME, "partitions of LOG: .*--actions produce,consume"),
        (PRODUCE, PRODUCE, CONSUME, "subscribe to LOG: .*lacks the permission to consume: .*--actions consume$"),
        (PRODUCE, CONSUME, CONSUME, "producer on LOG: .*lacks the permission to produce"),
        (PRODUCE, BOTH, (), "grant-permission pulsar/system --actions consume --role ROLE"),
    ],
    ids=["all", "no data", "data read only", "no log", "log not read", "log not written", "no coordinators"],
)
def test_a_sink_needs_three_rights_and_a_missing_one_is_named(
    data: tuple[str, ...], log: tuple[str, ...], system: tuple[str, ...], lacks: str, guarded: Guarded, role: str
) -> None:
    topic, control = guarded.make(f"{role}-rows"), guarded.make(f"__eos-{role}")
    guarded.grant(role, topic, data)
    guarded.grant(role, control, log)
    guarded.grant(role, "pulsar/system", system)
    with guarded.client(role) as client:
        if not lacks:
            write_a_batch(client, role, topic)
            return
        told = lacks.replace("TOPIC:", f"{topic}:").replace("LOG", control)
        with pytest.raises((RefusedForGood, InvalidInput), match=told):
            write_a_batch(client, role, topic)


def test_the_control_topic_is_made_by_a_role_that_has_both_rights_on_the_namespace(guarded: Guarded, role: str) -> None:
    topic = guarded.make(f"{role}-rows")
    guarded.grant(role, "public/default", BOTH)
    guarded.grant(role, "pulsar/system", CONSUME)
    with guarded.client(role) as client:
        write_a_batch(client, role, topic)


def test_a_writer_without_transactions_needs_to_produce_and_nothing_else(guarded: Guarded, role: str) -> None:
    topic = guarded.make(f"{role}-rows")
    guarded.grant(role, topic, PRODUCE)
    with guarded.client(role) as client:
        client.connect()
        assert client.partitions(topic) == 0
        assert client.schema(topic) is None
        with client.producer(topic) as producer:
            assert isinstance(producer.send_record(b"row", None), MessageId)


def test_topics_are_made_and_deleted_by_administrators_and_subscriptions_by_those_who_consume(
    guarded: Guarded, role: str
) -> None:
    topic, made = guarded.make(f"{role}-rows"), f"{BASE}/{role}-made"
    guarded.grant(role, "public/default", BOTH)
    with guarded.client(role) as client:
        client.subscription(topic, role, initial="earliest").close()
    with Admin(guarded.broker.admin_url, guarded.credentials(role)) as theirs:
        with pytest.raises(Refused, match="role may not create topics"):
            theirs.create(made, 0)
        with pytest.raises(Refused, match="role may not create topics"):
            theirs.create(made, 2)
        with pytest.raises(Refused, match="role may not delete topics"):
            theirs.delete(topic)
        theirs.unsubscribe(topic, role)
        guarded.make_administrator(role)
        theirs.create(made, 2)
        theirs.delete(topic)


def test_a_source_needs_to_consume_and_a_pattern_the_namespace(guarded: Guarded, role: str) -> None:
    topic = guarded.make(f"{role}-rows")
    with guarded.client("admin") as admin, admin.producer(topic) as producer:
        producer.send_record(b"row", None)
    guarded.grant(role, topic, CONSUME)
    with guarded.client(role) as client, client.entry_reader(topic, None) as reader:
        assert client.partitions(topic) == 0
        assert client.schema(topic) is None
        client.subscription(topic, role, initial="earliest").close()
        assert len(reader.read(PATIENCE_S)) == 1
        with pytest.raises(RefusedForGood, match=r"on the whole namespace: .*--actions consume"):
            client.topics("public/default")
        guarded.grant(role, "public/default", CONSUME)
        assert topic in client.topics("public/default")
    with Admin(guarded.broker.admin_url, guarded.credentials(role)) as admin_api:
        assert admin_api.ledgers(topic), "what minPartitions asks for"


def test_segments_come_from_the_bookie_to_a_role_that_may_consume_their_topic_and_no_more(
    guarded: Guarded, role: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = guarded.make(f"{role}-rows")
    with guarded.client("admin") as admin, admin.producer(topic) as producer:
        admin.subscription(topic, "keeps", initial="earliest").close()
        for number in range(5):
            producer.send_record(b"row %d" % number, None)
    with ZooKeeperMetadata(guarded.broker.zookeeper) as zookeeper:
        host, port = zookeeper.address("bk0test")

    def rows(read_from: str) -> list[pa.RecordBatch]:
        given = {
            "service.url": guarded.broker.service_url,
            "admin.url": guarded.broker.admin_url,
            "token": str(guarded.credentials(role).data),
            "topic": topic,
            "read.from": read_from,
            "bookie.addresses": f"bk0test={host}:{port}",
        }
        source = PulsarDataSource(given)
        reader = cast(PulsarReader, source.reader(source.schema()))
        return [batch for task in reader.partitions() for batch in reader.read(task)]

    with pytest.raises(RefusedForGood, match="consume"):
        rows("bookies")
    with Admin(guarded.broker.admin_url, guarded.credentials(role)) as theirs:
        for ask in (segments_of, Admin.internal_info):  # the latter names the objects of offloaded segments
            with pytest.raises(Refused, match="Unauthorized"):
                ask(theirs, topic)
        guarded.grant(role, topic, CONSUME)
        assert [one.last for one in segments_of(theirs, topic).segments] == [4]
        assert theirs.internal_info(topic)["ledgers"]
    with caplog.at_level(logging.WARNING, "eos.source"):
        by_bookie = rows("bookies")
    assert not [one for one in caplog.messages if "through its brokers" in one]
    assert sum(batch.num_rows for batch in by_bookie) == 5
    assert by_bookie == rows("brokers")


def test_a_bookie_knows_no_role_and_gives_a_ledger_to_any_client(guarded: Guarded, role: str) -> None:
    """The warning in docs/how-to/read-history.md."""
    topic = guarded.make(f"{role}-rows")
    with guarded.client("admin") as admin, admin.producer(topic) as producer:
        admin.subscription(topic, "keeps", initial="earliest").close()
        ledger = producer.send_record(b"secret", None).ledger
    with ZooKeeperMetadata(guarded.broker.zookeeper) as zookeeper, Bookies(zookeeper.address) as bookies:
        ((_, stored),) = itertools.chain.from_iterable(LedgerReader(bookies, zookeeper.metadata(ledger)).read(0, 0))
    assert stored.endswith(b"secret")


def test_policies_are_shown_to_administrators_and_settings_to_superusers(guarded: Guarded, role: str) -> None:
    topic = guarded.make(f"{role}-rows")
    guarded.grant(role, topic, BOTH)
    guarded.grant(role, "pulsar/system", CONSUME)
    with Admin(guarded.broker.admin_url, guarded.credentials(role)) as theirs:
        assert theirs.version()
        theirs.open_transactions()
        with pytest.raises(Refused, match="Unauthorized"):
            theirs.keeping(topic)
        guarded.make_administrator(role)
        assert theirs.keeping(topic)
        with pytest.raises(Refused, match="Unauthorized"):
            theirs.setting("numTransactionReplayThreadPoolSize")
    with Admin(guarded.broker.admin_url, guarded.credentials("admin")) as superuser:
        assert superuser.setting("numTransactionReplayThreadPoolSize") == "1"


def test_only_the_principal_that_opened_a_transaction_finds_it(guarded: Guarded) -> None:
    with (
        Client(Cluster(guarded.broker.service_url, Credentials("token", "wrong"))) as stranger,
        pytest.raises(Refused, match="AuthenticationError"),
    ):
        stranger.coordinators()
    for name in ("alice", "bob"):
        guarded.grant(name, "public/default", BOTH)
        guarded.grant(name, "pulsar/system", CONSUME)
    with guarded.client("alice") as alice, guarded.client("bob") as bob, guarded.client("admin") as superuser:
        txn = transaction(alice)
        assert code_of(lambda: end(bob, txn, commit=False)) == "TransactionNotFound"
        assert code_of(lambda: end(alice, txn, commit=False)) == "OK"
        second = transaction(alice)
        assert code_of(lambda: end(superuser, second, commit=False)) == "OK"
        topic = f"{BASE}/p-alice"
        alice.ensure_topic(topic)
        with alice.producer(topic) as producer:
            assert isinstance(producer.send_record(b"x", None), MessageId)
