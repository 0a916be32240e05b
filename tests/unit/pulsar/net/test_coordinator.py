"""A transaction coordinator against a scripted broker: what is asked again, and what is not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from eos.errors import ConnectionLost, OutOfTurn, Refused, RefusedForGood, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.coordinator import Coordinator
from eos.pulsar.net.transactions import Transactions
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandNewTxnResponse,
    CommandTcClientConnectResponse,
    ServerError,
)
from eos.pulsar.wire.txn import TxnId
from tests.unit.pulsar.net.clock import Clock
from tests.unit.pulsar.net.fake_broker import FakeBroker, cut, first_then_well, looked_up, refusing, silent
from tests.waiting import PATIENCE_S, in_a_hurry, until


def test_a_transaction_from_end_to_end(broker: FakeBroker, client: Client) -> None:
    assert client.coordinators() == 2
    coordinator = client.coordinator(1)
    txn = coordinator.new_transaction(60_000)
    assert txn == TxnId(1 << 48, 7)
    coordinator.add_partitions(txn, ["t"])
    handed_over: list[bool] = []
    coordinator.end(txn, commit=True, sent=lambda: handed_over.append(True))
    assert handed_over == [True]
    (added,) = broker.commands(Type.ADD_PARTITION_TO_TXN)
    assert list(added.add_partition_to_txn.partitions) == ["persistent://public/default/t"]


def test_nothing_is_known_of_a_transaction_that_was_opened_just_now(client: Client) -> None:
    """A coordinator of a new Pulsar at the same URL counts from the beginning."""
    coordinator = client.coordinator(1)
    for commit in (False, True):
        txn = coordinator.new_transaction(60_000)
        assert txn == TxnId(1 << 48, 7)
        coordinator.add_partitions(txn, ["t"])
        coordinator.end(txn, commit)


def test_a_coordinator_that_loads_is_asked_again(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.TC_CLIENT_CONNECT_REQUEST] = first_then_well(
        refusing(ServerError.TransactionCoordinatorNotFound)
    )
    client.coordinator(0)
    assert len(broker.commands(Type.TC_CLIENT_CONNECT_REQUEST)) == 2


def test_a_coordinator_that_never_loads(broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("eos.backoff.time", clock)
    broker.handlers[Type.TC_CLIENT_CONNECT_REQUEST] = refusing(ServerError.TransactionCoordinatorNotFound)
    with pytest.raises(Unanswered, match=r"transaction coordinator 0: .* not loaded yet"):
        client.coordinator(0)
    assert 28 < clock.passed <= 30


def test_a_full_coordinator_does_not_answer_and_the_error_says_so(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.NEW_TXN] = silent
    coordinator = client.coordinator(0)
    with in_a_hurry(client), pytest.raises(Unanswered, match="maxActiveTransactionsPerCoordinator"):
        coordinator.new_transaction(1)


@pytest.mark.parametrize("fault", [silent, cut])
def test_a_lost_commit_is_sent_once_and_may_be_asked_for_again(
    broker: FakeBroker, client: Client, fault: object
) -> None:
    coordinator = client.coordinator(0)
    broker.handlers[Type.END_TXN] = first_then_well(silent if fault is silent else cut)
    raised, hurry = (Unanswered, in_a_hurry(client)) if fault is silent else (ConnectionLost, nullcontext())
    with hurry, pytest.raises(raised, match=r"commit transaction \(0,7\)"):
        coordinator.end(TxnId(0, 7), commit=True)
    until(lambda: len(broker.commands(Type.END_TXN)) == 1)
    coordinator.end(TxnId(0, 7), commit=True)
    assert len(broker.commands(Type.END_TXN)) == 2


def test_a_coordinator_that_moved_is_found_anew_by_the_next_call(broker: FakeBroker, client: Client) -> None:
    coordinator = client.coordinator(0)
    broker.handlers[Type.NEW_TXN] = first_then_well(refusing(ServerError.TransactionCoordinatorNotFound))
    with pytest.raises(Refused, match="TransactionCoordinatorNotFound"):
        coordinator.new_transaction(1)
    assert len(broker.commands(Type.LOOKUP)) == 1
    coordinator.new_transaction(1)
    assert len(broker.commands(Type.LOOKUP)) == 2


def test_a_role_without_the_right_to_look_it_up_is_refused_as_by_a_broker(broker: FakeBroker, client: Client) -> None:
    """A commit may be under way: then the refusal says nothing of the batch, as any other of the network's."""
    no_right = looked_up("Failed", error=ServerError.AuthorizationError, message="Client is not authorized to Lookup")
    broker.handlers[Type.LOOKUP] = no_right
    with pytest.raises(RefusedForGood, match=r"look up .*not authorized to Lookup\. Transactions need a role"):
        client.coordinator(0)
    assert len(broker.commands(Type.LOOKUP)) == 1


def test_an_interrupt_while_it_connects_leaves_the_next_call_to_connect(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is shared by the whole process: else no sink or job of it could use this coordinator any more."""
    ask = Connection.ask

    def interrupted(connection: Connection, request: BaseCommand, *rest: Any, **named: Any) -> BaseCommand:
        if request.type == Type.TC_CLIENT_CONNECT_REQUEST:
            raise KeyboardInterrupt
        return ask(connection, request, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "ask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.coordinator(0)
    assert client.coordinator(0).new_transaction(60_000) == TxnId(0, 7)


def test_no_commit_after_an_abort_that_may_have_been_lost(broker: FakeBroker, client: Client) -> None:
    coordinator = client.coordinator(0)
    broker.handlers[Type.END_TXN] = first_then_well(silent)
    with in_a_hurry(client), pytest.raises(Unanswered):
        coordinator.end(TxnId(0, 7), commit=False)
    with pytest.raises(OutOfTurn):
        coordinator.end(TxnId(0, 7), commit=True)
    coordinator.end(TxnId(0, 7), commit=False)


class Line:
    """A connection to the coordinator's broker, whose answers tests give.

    Attributes:
        alive: as of `Connection`.
        answers: {type of a request: what is done then}.
    """

    def __init__(self, answers: dict[Type, Callable[[], BaseCommand]]) -> None:
        self.alive, self.answers = True, answers

    def ask(self, request: BaseCommand, asked: str, timeout_s: float = 0, *, sent: object = None) -> BaseCommand:
        """Return the answer that is given."""
        return self.answers[request.type]()


def lost() -> BaseCommand:
    raise ConnectionLost("the broker of the coordinator is gone")


def moved() -> BaseCommand:
    error = ServerError.TransactionCoordinatorNotFound
    return BaseCommand(type=Type.NEW_TXN_RESPONSE, new_txn_response=CommandNewTxnResponse(error=error))


def connected() -> BaseCommand:
    return BaseCommand(
        type=Type.TC_CLIENT_CONNECT_RESPONSE, tc_client_connect_response=CommandTcClientConnectResponse()
    )


@pytest.mark.parametrize("answer", [lost, moved])
def test_a_thread_that_learns_late_of_a_lost_line_disturbs_none_that_connects_again(
    answer: Callable[[], BaseCommand],
) -> None:
    """Two sinks of one driver, or a sink and its tries that were given up, share the coordinator."""
    asked, late = threading.Event(), threading.Event()

    def answered_late() -> BaseCommand:
        asked.set()
        late.wait(PATIENCE_S)
        return answer()

    def fail() -> None:
        with pytest.raises((ConnectionLost, Refused)):
            coordinator.new_transaction(1)

    def connected_meanwhile() -> BaseCommand:
        late.set()
        other.join(PATIENCE_S)
        assert not other.is_alive()
        return connected()

    old = Line({Type.TC_CLIENT_CONNECT_REQUEST: connected, Type.NEW_TXN: answered_late})
    new = Line({Type.TC_CLIENT_CONNECT_REQUEST: connected_meanwhile})
    lines: Any = iter([old, new])
    finder: Any = SimpleNamespace(owner=lambda topic: next(lines), patiently=lambda asked, attempt: attempt())
    coordinator = Coordinator(finder, Transactions(), 0)
    coordinator.connect()
    other = threading.Thread(target=fail)
    other.start()
    asked.wait(PATIENCE_S)
    old.alive = False
    coordinator.connect()
    coordinator.connect()
    assert next(lines, None) is None, "it is connected"
