"""Connections that several threads want at once, and hosts that give none."""

from __future__ import annotations

import gc
import socket
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar, cast

import pytest

import eos
from eos.config import Cluster, Credentials
from eos.errors import ConnectionLost, EosError, RefusedForGood, Unanswered, Unreachable
from eos.pulsar.net.client import SHARED_CLIENTS, Client
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.pool import Pool
from eos.pulsar.net.service_url import Address
from eos.pulsar.net.transport import PlainTransport, Transport, connect
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import ServerError
from tests.unit.pulsar.net.clock import Clock
from tests.unit.pulsar.net.fake_broker import (
    FakeBroker,
    Handler,
    Session,
    cut,
    first_then_well,
    looked_up,
    refusing,
    silent,
)
from tests.waiting import PATIENCE_S, in_a_hurry, until


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


def reset(session: Session, _: Frame) -> None:
    """As a proxy does whose broker is gone."""
    session._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    session._socket.close()


@pytest.mark.parametrize(
    ("greeting", "error", "why"),
    [
        (reset, Unreachable, "can't connect to .*reset by peer before it answered.* Check that the broker is up"),
        (cut, Unreachable, "can't connect to .*was closed before it answered.* Check that the broker is up"),
        (silent, Unanswered, "no answer from"),
    ],
)
def test_a_host_that_takes_connections_and_says_nothing_is_passed_over(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, greeting: Handler, error: type[EosError], why: str
) -> None:
    receive = PlainTransport.receive

    def receive_soon(transport: PlainTransport, timeout_s: float) -> bytes | None:
        if greeting is silent and transport._socket.getpeername()[1] == gone.port:
            return None  # its silence is over at once; the other host may take its time
        return receive(transport, timeout_s)

    monkeypatch.setattr(PlainTransport, "receive", receive_soon)
    with FakeBroker() as gone:
        gone.handlers[Type.CONNECT] = greeting
        with gone.client() as client, pytest.raises(error, match=why):
            client.partitions("t")
        with Client(Cluster(f"{gone.url},127.0.0.1:{broker.port}")) as client:
            assert client.partitions("t") == 0


def test_a_host_that_was_a_broker_is_waited_for(broker: FakeBroker, client: Client) -> None:
    """A broker that starts again may take connections before it answers, and a proxy does all the while."""
    first = client._pool.service()
    broker.handlers[Type.CONNECT] = first_then_well(cut)
    broker.cut_all()
    until(lambda: not first.alive)
    assert client.partitions("t") == 0
    assert len(broker.sessions) == 3


# ---- one of several hosts that can't serve now

ASKS: dict[int, Callable[[Client], object]] = {
    Type.CONNECT: lambda client: client.connect(),
    Type.LOOKUP: lambda client: client.producer("t"),
    Type.PARTITIONED_METADATA: lambda client: client.partitions("t"),
    Type.GET_TOPICS_OF_NAMESPACE: lambda client: client.topics("public/default"),
    Type.GET_SCHEMA: lambda client: client.schema("t"),
}
"""All that any host of the service URL is asked for."""

NOT_YET = {
    "it starts or stops": refusing(ServerError.ServiceNotReady, "Failed due to pulsar service is not ready"),
    "it has too much to do": refusing(ServerError.TooManyRequests, "Failed due to too many pending lookup requests"),
}
FULL = {
    "it has no room": refusing(ServerError.NotAllowedError, "Reached the maximum number of connections"),
    "it has no room for this address": refusing(
        ServerError.NotAllowedError, "Reached the maximum number of connections on address/127.0.0.1"
    ),
}
ELSEWHERE = [(kind, why) for kind in ASKS for why in NOT_YET] + [(Type.CONNECT, why) for why in FULL]


@pytest.fixture
def other() -> Iterator[FakeBroker]:
    """The host that comes second in the service URL."""
    with FakeBroker() as broker:
        yield broker


@pytest.fixture
def of_two(broker: FakeBroker, other: FakeBroker) -> Iterator[Client]:
    """A client whose service URL has two hosts."""
    with Client(Cluster(f"{broker.url},127.0.0.1:{other.port}")) as client:
        yield client


@pytest.mark.parametrize(("kind", "why"), ELSEWHERE)
def test_a_host_that_can_not_serve_now_is_passed_over(
    broker: FakeBroker, other: FakeBroker, of_two: Client, kind: int, why: str
) -> None:
    broker.handlers[kind] = (NOT_YET | FULL)[why]
    ASKS[kind](of_two)
    assert (len(broker.commands(kind)), len(other.commands(kind))) == (1, 1)
    ASKS[kind](of_two)
    assert len(broker.commands(kind)) == 1, "the one that answered is asked from now on"


@pytest.mark.parametrize("why", NOT_YET)
@pytest.mark.parametrize("kind", ASKS)
def test_the_only_host_is_asked_again_where_it_can_not_serve_yet(
    broker: FakeBroker, client: Client, kind: int, why: str
) -> None:
    broker.handlers[kind] = first_then_well(NOT_YET[why])
    ASKS[kind](client)
    assert len(broker.commands(kind)) == 2


@pytest.mark.parametrize("why", NOT_YET)
@pytest.mark.parametrize("kind", ASKS)
def test_all_hosts_are_asked_again_where_none_can_serve_yet(
    broker: FakeBroker, other: FakeBroker, of_two: Client, kind: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eos.backoff.time", Clock())
    broker.handlers[kind] = other.handlers[kind] = NOT_YET[why]
    with pytest.raises(Unanswered, match=r"The last problem was"):
        ASKS[kind](of_two)
    assert len(broker.commands(kind)) > 1
    assert len(other.commands(kind)) > 1
    broker.handlers.clear()
    other.handlers[kind] = first_then_well(NOT_YET[why])
    ASKS[kind](of_two)


@pytest.mark.parametrize("why", FULL)
def test_no_host_with_room_is_an_error_at_once(broker: FakeBroker, other: FakeBroker, of_two: Client, why: str) -> None:
    broker.handlers[Type.CONNECT] = other.handlers[Type.CONNECT] = FULL[why]
    with pytest.raises(RefusedForGood, match=rf":{broker.port}: .*maximum number of connections.*:{other.port}: "):
        of_two.connect()
    other.handlers[Type.CONNECT] = first_then_well(NOT_YET["it starts or stops"])
    of_two.connect()


@pytest.mark.parametrize("kind", [kind for kind in ASKS if kind != Type.CONNECT])
@pytest.mark.parametrize(("answer", "error"), [(silent, Unanswered), (cut, ConnectionLost)])
def test_after_a_request_without_an_answer_another_host_is_asked(
    broker: FakeBroker, other: FakeBroker, of_two: Client, kind: int, answer: Handler, error: type[EosError]
) -> None:
    broker.handlers[kind] = answer
    of_two.connect()
    with in_a_hurry(of_two) if answer is silent else nullcontext(), pytest.raises(error):
        ASKS[kind](of_two)
    ASKS[kind](of_two)
    assert (len(broker.commands(kind)), len(other.commands(kind))) == (1, 1)


@pytest.mark.parametrize("kind", [Type.LOOKUP, Type.PRODUCER])
def test_an_answer_of_a_topics_broker_says_nothing_of_the_host(
    broker: FakeBroker, other: FakeBroker, of_two: Client, kind: int
) -> None:
    with FakeBroker() as owner:
        answer = "Redirect" if kind == Type.LOOKUP else "Connect"
        broker.handlers[Type.LOOKUP] = looked_up(answer, broker_service_url=owner.url)
        owner.handlers[kind] = first_then_well(NOT_YET["it starts or stops"])
        of_two.producer("t")
    assert len(broker.commands(Type.LOOKUP)) == 2
    assert not other.received


def test_threads_that_met_the_same_host_pass_over_no_other(of_two: Client, other: FakeBroker) -> None:
    first = of_two._pool.service()
    for _ in range(2):
        of_two._pool.pass_over(first)
    assert of_two._pool.service().address.port == other.port


# ---- clients that share a process


@pytest.mark.parametrize("well", ["a", "b", "c"])
def test_each_host_is_asked_once_also_where_another_thread_connects_meanwhile(
    well: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(Cluster("pulsar://a:1,b:2,c:3"))
    asked: list[str] = []

    def get(address: Address) -> str:
        asked.append(address.host)
        pool._first = 1  # as another thread that has connected to the second host meanwhile
        if address.host != well:
            raise Unanswered("no answer")
        return address.host

    monkeypatch.setattr(pool, "get", get)
    assert cast(str, pool.service()) == well
    assert asked == list("abc")[: "abc".index(well) + 1]


def test_a_client_is_handed_on_from_where_a_process_enters() -> None:
    """In the driver's sink, and where a query reads. All other code is given its client, and a task its process's."""
    root = Path(eos.__path__[0])
    places = [path for path in root.rglob("*.py") if "Client.shared(" in path.read_text(encoding="utf-8")]
    assert {str(path.relative_to(root)) for path in places} == {
        "sinks/context.py",
        "source/brokers.py",
    }


def test_a_client_whose_credentials_changed_is_not_kept_for_ever(broker: FakeBroker) -> None:
    """A token that is renewed as an option: the clients of old ones end their connections, except that of an owner."""
    clients = []
    for number in range(SHARED_CLIENTS + 3):
        clients.append(Client.shared(Cluster(broker.url, Credentials("token", f"old-{number}"))))
        clients[-1].partitions("t")
        if number == 0:
            producer = clients[-1].producer("t")
    assert len([client for client in clients if client._pool._connections]) == SHARED_CLIENTS + 1
    assert producer.is_idle, "the connection of an open producer stays"
    assert clients[2].partitions("t") == 0, "whoever holds it connects again"
    assert [Client.shared(one.cluster) is one for one in clients[:3]] == [True] * 3, "there is one of each cluster"
    for client in clients:
        client.close()


def test_what_a_holder_of_an_old_client_connects_again_is_ended_like_the_rest(broker: FakeBroker) -> None:
    def newer(count: int) -> list[Client]:
        made = [Client.shared(Cluster(broker.url, Credentials("token", f"{number}"))) for number in range(count)]
        for client in made:
            client.partitions("t")
        return made

    held = Client.shared(Cluster(broker.url, Credentials("token", "held")))
    for _ in range(2):
        held.partitions("t")
        assert held._pool._connections
        newer(SHARED_CLIENTS)
        Client.shared(Cluster(broker.url, Credentials("token", "last")))
        assert not held._pool._connections
    again = weakref.ref(held)
    del held
    gc.collect()
    assert again() is None, "nothing keeps one that no holder has"
    for client in newer(SHARED_CLIENTS):
        client.close()
