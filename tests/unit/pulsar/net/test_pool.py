"""Connections that several threads want at once."""

from __future__ import annotations

import threading
import time

import pytest

from eos.config import Cluster
from eos.errors import Unreachable
from eos.pulsar.net.client import Client
from eos.pulsar.net.service_url import Address
from eos.pulsar.net.transport import Transport, connect
from tests.unit.pulsar.net.fake_broker import FakeBroker


def test_threads_that_want_an_unreachable_broker_share_one_dial(monkeypatch: pytest.MonkeyPatch) -> None:
    dials: list[object] = []
    all_wait = threading.Event()

    def slow_failure(address: object, cluster: Cluster) -> Transport:
        dials.append(address)
        all_wait.wait(5)
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
    time.sleep(0.2)  # until all of them wait
    all_wait.set()
    for thread in threads:
        thread.join(10)
    assert (len(dials), len(failures)) == (1, 16)


def test_an_interrupted_dial_is_made_again_by_a_thread_that_waited(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    dials: list[object] = []
    waiting = threading.Event()

    def interrupted_first(address: Address, cluster: Cluster) -> Transport:
        dials.append(address)
        if len(dials) == 1:
            waiting.wait(5)
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
    time.sleep(0.2)
    waiting.set()
    for thread in threads:
        thread.join(10)
    client.close()
    assert sorted(map(repr, answers)) == ["0", "0", "0", "KeyboardInterrupt()"]
    assert len(dials) == 2
