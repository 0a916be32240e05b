"""Connections that several threads want at once."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import ClassVar

import pytest

from eos.config import Cluster
from eos.errors import Unreachable
from eos.pulsar.net.client import Client
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.service_url import Address
from eos.pulsar.net.transport import Transport, connect
from tests.unit.pulsar.net.fake_broker import FakeBroker
from tests.waiting import PATIENCE_S, until


class Awaited(Future[Connection]):
    """The result of a dial; each thread that waits for one is counted: it gets this one, whenever that comes."""

    waits: ClassVar[list[Awaited]]

    def result(self, timeout: float | None = None) -> Connection:
        self.waits.append(self)
        return super().result(timeout)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[Awaited]:
    """One for each thread that waits for the dial of another."""
    counted: list[Awaited] = []
    monkeypatch.setattr(Awaited, "waits", counted, raising=False)
    monkeypatch.setattr("eos.pulsar.net.pool.Future", Awaited)
    return counted


def test_threads_that_want_an_unreachable_broker_share_one_dial(
    waits: list[Awaited], monkeypatch: pytest.MonkeyPatch
) -> None:
    dials: list[object] = []
    all_wait = threading.Event()

    def slow_failure(address: object, cluster: Cluster) -> Transport:
        dials.append(address)
        all_wait.wait(PATIENCE_S)
        raise Unreachable(f"can't reach {address}")

    monkeypatch.setattr("eos.pulsar.net.connection.connect", slow_failure)
    client = Client(Cluster("pulsar://127.0.0.1:1"))
    failures: list[Unreachable] = []

    def ask() -> None:
        try:
            client.partitions("t")
        except Unreachable as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    until(lambda: len(waits) == 15)
    all_wait.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (len(dials), len(failures)) == (1, 16)


def test_an_interrupted_dial_is_made_again_by_a_thread_that_waited(
    broker: FakeBroker, waits: list[Awaited], monkeypatch: pytest.MonkeyPatch
) -> None:
    dials: list[object] = []
    waiting = threading.Event()

    def interrupted_first(address: Address, cluster: Cluster) -> Transport:
        dials.append(address)
        if len(dials) == 1:
            waiting.wait(PATIENCE_S)
            raise KeyboardInterrupt
        return connect(address, cluster)

    monkeypatch.setattr("eos.pulsar.net.connection.connect", interrupted_first)
    client = broker.client()
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(client.partitions("t"))
        except KeyboardInterrupt as error:
            answers.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(waits) == 3)
    waiting.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    client.close()
    assert sorted(map(repr, answers)) == ["0", "0", "0", "KeyboardInterrupt()"]
    assert len(dials) == 2
