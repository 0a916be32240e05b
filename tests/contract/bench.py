"""A cluster to try things on, simulated or real, and what a scenario does with it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import pytest

from eos.commit.ports import CoordinatorPort
from eos.config import Cluster
from eos.errors import Fenced, NetworkError, Refused
from eos.pulsar.net.client import Client as NetClient
from eos.pulsar.wire.txn import TxnId
from tests.simulation.broker import Broker
from tests.simulation.client import Client as SimClient
from tests.simulation.world import Alone
from tests.waiting import PATIENCE_S

MINUTE_MS = 60_000
SOON_S = 30.0  # a transaction lives longer: its time-out brings nothing about
SILENCE_S = 1.0  # a reader that got nothing for so long has seen all there is


class Bench(Protocol):
    """A cluster to try things on. Each client stands for one process."""

    opened: list[TxnId]
    sleep: Callable[[float], None]
    clock: Callable[[], float]

    def client(self) -> Any: ...

    def create(self, topic: str) -> None: ...

    def topic(self) -> str:
        """Create a topic with a name of its own."""
        topic = f"persistent://public/default/contract-{uuid.uuid4().hex}"
        self.create(topic)
        return topic

    def coordinator(self, which: int = 0) -> CoordinatorPort:
        """One of two coordinators that the sinks of other tests are unlikely to share."""
        coordinator: CoordinatorPort = self.client().coordinator(2 + which)
        return coordinator

    def begin(self, *topics: str, which: int = 0) -> TxnId:
        """Open a transaction on topics."""
        txn = self.coordinator(which).new_transaction(MINUTE_MS)
        self.opened.append(txn)
        if topics:
            self.coordinator(which).add_partitions(txn, topics)
        return txn

    def end(self, txn: TxnId, commit: bool) -> None:
        """End a transaction, in a process that does nothing else."""
        self.client().coordinator(txn.coordinator).end(txn, commit)

    def end_an_empty_one(self, topic: str, commit: bool = True, which: int = 0) -> None:
        """End an empty transaction on a topic, and give the broker a moment for what follows from it."""
        self.end(self.begin(topic, which=which), commit)
        self.sleep(0.2)

    def end_all(self) -> None:
        """Leave nothing open that would delay others."""
        for txn in self.opened:
            answer(partial(self.end, txn, False))


class Simulated(Bench):
    """The simulated cluster."""

    def __init__(self) -> None:
        self._world = Alone(Broker(coordinators=4))
        self.opened = []
        self.sleep = self._world.sleep
        self.clock = lambda: self._world.broker.now

    def client(self) -> SimClient:
        """Connect."""
        return SimClient(self._world)

    def create(self, topic: str) -> None:
        """Topics are made when they are used."""


class Real(Bench):
    """A real broker."""

    def __init__(self, service_url: str) -> None:
        self._cluster = Cluster(service_url, request_timeout_s=PATIENCE_S)
        self.opened = []
        self._clients: list[NetClient] = []
        self.sleep = time.sleep
        self.clock = time.monotonic

    def client(self) -> NetClient:
        """Connect."""
        self._clients.append(NetClient(self._cluster))
        return self._clients[-1]

    def create(self, topic: str) -> None:
        """Create a topic."""
        self.client().ensure_topic(topic)

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.close()


@pytest.fixture(params=["simulation", "broker"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Both clusters, one after the other."""
    if request.param == "simulation":
        yield Simulated()
        return
    real = Real(request.getfixturevalue("pulsar").service_url)
    yield real
    real.end_all()
    real.close()


def assert_read(bench: Bench, topic: str, wanted: list[bytes]) -> None:
    """Assert that a new reader gets this: now, or soon, since a broker does some things after it has answered."""
    give_up = bench.clock() + SOON_S
    while (found := _read(bench, topic)) != wanted and bench.clock() < give_up:
        bench.sleep(0.2)
    assert found == wanted


def _read(bench: Bench, topic: str) -> list[bytes]:
    reader = bench.client().reader(topic)
    found = []
    while (message := reader.read(SILENCE_S)) is not None:
        found.append(message.data)
    reader.close()
    return found


def answer(request: Callable[[], object]) -> str:
    """Name an answer: "ok", the broker's code, or the kind of failure."""
    try:
        request()
    except Refused as refused:
        return refused.code
    except Fenced:
        return "Fenced"
    except NetworkError:
        return "no receipt"
    return "ok"


class Writer:
    """A process that sends, and never hears of the end of its transactions."""

    def __init__(self, bench: Bench, topic: str) -> None:
        self._producer = bench.client().producer(topic)

    def send(self, data: bytes, txn: TxnId | None = None) -> None:
        """Send one record."""
        self._producer.send_record(data, txn)


def prime(bench: Bench, topic: str) -> None:
    """Let a topic hold its first transaction."""
    txn = bench.begin(topic)
    Writer(bench, topic).send(b"prime", txn)
    bench.end(txn, False)
