from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from eos.errors import ConnectionLost, Unanswered
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.service_url import Address
from eos.pulsar.net.transport import PlainTransport, _timeval
from eos.pulsar.wire.frames import encode
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandPing
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session
from tests.waiting import PATIENCE_S

PING = BaseCommand(type=BaseCommand.PING, ping=CommandPing())


@pytest.fixture
def pair() -> Iterator[tuple[PlainTransport, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield PlainTransport(ours, send_timeout_s=PATIENCE_S), theirs


def test_any_number_of_buffers_arrives_in_order(pair: tuple[PlainTransport, socket.socket]) -> None:
    transport, theirs = pair
    buffers = [b"%06d" % number * 100 for number in range(2000)]
    received = bytearray()

    def receive() -> None:
        while len(received) < 1_200_000:
            received.extend(theirs.recv(65536))

    receiving = threading.Thread(target=receive)
    receiving.start()
    transport.send(buffers)
    receiving.join(PATIENCE_S)
    assert bytes(received) == b"".join(buffers)


def test_a_peer_that_takes_nothing_fails_the_send() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(OSError, match="it takes no further data"):
        PlainTransport(ours, send_timeout_s=0.2).send([b"x" * 50_000_000])


def test_nothing_in_time_is_none_and_the_end_is_empty(pair: tuple[PlainTransport, socket.socket]) -> None:
    transport, theirs = pair
    assert transport.receive(0.01) is None
    theirs.sendall(b"abc")
    assert transport.receive(PATIENCE_S) == b"abc"
    theirs.close()
    assert transport.receive(PATIENCE_S) == b""
    with pytest.raises(OSError, match=r"[Bb]roken pipe|reset"):
        transport.send([b"x"])
    transport.shut()


def test_a_broker_that_takes_nothing_loses_the_connection_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, released = threading.Event(), threading.Event()

    def stop(session: Session, frame: object) -> None:
        stuck.set()
        released.wait(PATIENCE_S)

    monkeypatch.setattr("eos.pulsar.net.transport._timeval", lambda seconds: _timeval(0.3))  # of sending alone
    with FakeBroker() as broker:
        connection = Connection(Address("127.0.0.1", broker.port), broker.client().cluster)
        broker.handlers[BaseCommand.PING] = stop
        connection.send([encode(PING)])
        assert stuck.wait(PATIENCE_S)
        try:
            with pytest.raises(ConnectionLost, match=rf"{broker.url} is gone \(it takes no further data\)"):
                connection.send([b"x" * 50_000_000])
        finally:
            released.set()
        assert not connection.alive
        with pytest.raises(ConnectionLost):
            connection.send([b"x"])


def test_a_budget_that_moves_is_waited_for() -> None:
    budget = InFlight(10)
    for _ in range(2):
        budget.acquire(5, 1, lambda: None)
    moves = threading.Timer(0.05, lambda: budget.release(5))
    moves.start()
    budget.acquire(5, PATIENCE_S, lambda: None)
    assert budget.used_bytes == 10
    with pytest.raises(Unanswered, match=r"no receipt within 0\.01 s while 10 bytes"):
        budget.acquire(1, 0.01, lambda: None)
