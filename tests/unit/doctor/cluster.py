"""A cluster that answers what a test wants, and the commands run against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from typer.testing import CliRunner

from eos.cli import app as cli
from eos.commit.control_log import Intent, Marker, OwnerRecord, Record, encode
from eos.config import Cluster
from eos.errors import NetworkError, Refused
from eos.pulsar.net.transaction_stats import Buffer, OpenTransaction
from eos.pulsar.protocol.topics import physical_topics
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.pulsar.wire.txn import TxnId

ROWS = "persistent://public/default/rows"
LOG = "persistent://public/default/__eos-rows"
TXN = TxnId(2, 7)
FREE = Buffer("Ready", MessageId(5, 9), MessageId(5, 9), 0)
HELD = Buffer("Ready", MessageId(5, 3), MessageId(5, 9), 1)
UNSETTLED = [Buffer(state, MessageId(-1, -1), MessageId(5, 9), 0) for state in ("None", "Initializing", "Close")]
"""Of a broker that loads or leaves the topic: it does not know the transactions yet, and shows none."""
INTENT = Intent(2, "query", "run", 4, 1, TXN, None)
BEGINS = OwnerRecord(1, "query", "run", 2, 0, begins=True)
MARKER = Marker(3, "query", "run", 4, 1, TXN, None, {}, {}, "offsets")


def opened(txn: TxnId = TXN) -> OpenTransaction:
    return OpenTransaction(txn, "OPEN", 1_000, 600_000, (ROWS,))


@dataclass(kw_only=True)
class FakeTypes:
    """Tells the types of subscriptions that the namespace and the broker allow, or refuses to."""

    types: tuple[str, ...] | Refused = ()
    broker_types: tuple[str, ...] | Refused = ("Exclusive", "Shared")

    def broker_subscription_types(self) -> tuple[str, ...]:
        if isinstance(self.broker_types, Refused):
            raise self.broker_types
        return self.broker_types

    def subscription_types(self, namespace: str) -> tuple[str, ...]:
        assert namespace == "public/default"
        if isinstance(self.types, Refused):
            raise self.types
        return self.types


@dataclass
class FakeAdmin(FakeTypes):
    buffers: dict[str, list[Buffer]]
    behind: TxnId | Refused | None = TXN
    open: list[OpenTransaction] = field(default_factory=list)
    aborted: list[TxnId] = field(default_factory=list)
    threads: str = "1"
    drivers: tuple[str, ...] = ()
    deleted: list[str] = field(default_factory=list)

    def delete(self, topic: str) -> None:
        self.deleted.append(topic)

    def connected(self, topic: str, subscription: str) -> tuple[str, ...]:
        assert (topic, subscription) == (LOG, "__eos-hold")
        return self.drivers

    def version(self) -> str:
        return "4.2.4"

    def setting(self, name: str) -> str | None:
        return self.threads

    def topics(self, namespace: str) -> tuple[str, ...]:
        return (ROWS, LOG)

    def buffer(self, topic: str) -> Buffer:
        said = self.buffers.get(topic, [FREE])
        return said.pop(0) if len(said) > 1 else said[0]

    def transaction_behind(self, topic: str, position: MessageId) -> TxnId | None:
        assert position == HELD.readable_to
        if isinstance(self.behind, Refused):
            raise self.behind
        return self.behind

    def open_transactions(self) -> list[OpenTransaction]:
        return self.open

    def transaction(self, txn: TxnId) -> OpenTransaction | None:
        return next((one for one in self.open if one.txn == txn), None)

    def abort(self, txn: TxnId) -> None:
        self.aborted.append(txn)
        self.open = [one for one in self.open if one.txn != txn]

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, *ended: object) -> None:
        pass


@dataclass
class Message:
    data: bytes
    message_id: MessageId
    publish_time_ms: int = 1_000
    replicated_from: str | None = None


class FakeReader:
    def __init__(self, log: list[Record], after: MessageId) -> None:
        messages = (Message(encode(record), MessageId(1, number)) for number, record in enumerate(log))
        self._left = [message for message in messages if message.message_id > after]

    def last_message_id(self) -> MessageId:
        return self._left[-1].message_id if self._left else EARLIEST

    def read(self, timeout_s: float) -> Message | None:
        return self._left.pop(0) if self._left else None

    def close(self) -> None:
        pass


class FakeClient:
    def __init__(self, log: list[Record], ends: list[NetworkError | None] | None = None) -> None:
        self.cluster = Cluster("pulsar://nowhere")
        self.log = log
        self.ends = ends if ends is not None else []
        self.busy: Exception | None = None
        self.held = False
        self.on_open: Callable[[], None] = lambda: None
        self.asked: list[tuple[str, object]] = []

    def partitions(self, topic: str) -> int:
        return 2 if topic.endswith("two") else 0

    def physical_topics(self, topic: str) -> list[str]:
        return physical_topics(topic, self.partitions(topic))

    def coordinators(self) -> int:
        return 3

    def coordinator(self, index: int) -> Any:
        client = self

        class Coordinator:
            def new_transaction(self, ttl_ms: int) -> TxnId:
                client.asked.append(("new", index))
                return TxnId(index, 100)

            def add_partitions(self, txn: TxnId, topics: list[str]) -> None:
                client.asked.append(("add", topics[0]))

            def end(self, txn: TxnId, commit: bool, sent: object = None) -> None:
                client.asked.append(("commit" if commit else "abort", txn))
                answer = client.ends.pop(0) if client.ends else None
                if answer is not None:
                    raise answer

        return Coordinator()

    def reader(self, topic: str, *, after: MessageId, stored: bool) -> FakeReader:
        return FakeReader(self.log if topic == LOG else [], after)

    def is_held(self, topic: str, subscription: str) -> bool:
        assert (topic, subscription) == (LOG, "__eos-hold")
        return self.held

    def producer(self, topic: str) -> Any:
        assert topic == LOG
        if self.busy is not None:
            raise self.busy
        self.on_open()

        class Producer:
            def close(self) -> None:
                pass

        return Producer()

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *ended: object) -> None:
        pass


def refused(code: str) -> Refused:
    return Refused("abort", code, "so")


def run(monkeypatch: pytest.MonkeyPatch, client: FakeClient, admin: FakeAdmin, *words: str, said: str = "") -> Any:
    def reaching(cluster: Cluster) -> FakeClient:
        client.cluster = cluster
        return client

    monkeypatch.setattr("eos.pulsar.net.client.Client", reaching)
    monkeypatch.setattr("eos.pulsar.net.admin.Admin", lambda *parts: admin)
    return CliRunner().invoke(cli.typer_app, list(words), input=said)
