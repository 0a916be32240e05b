from __future__ import annotations

import pytest

from eos.errors import OutOfTurn, Refused
from eos.pulsar.protocol.coordinator import CoordinatorHandshake
from eos.pulsar.protocol.coordinator import State as TopicState
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.transaction import State, Transaction
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandAddPartitionToTxnResponse,
    CommandEndTxnResponse,
    CommandNewTxnResponse,
    CommandTcClientConnectResponse,
    ServerError,
    TxnAction,
)
from eos.pulsar.wire.txn import TxnId

TXN = TxnId(3 << 48, 7)

OPENED = BaseCommand(
    type=Type.NEW_TXN_RESPONSE,
    new_txn_response=CommandNewTxnResponse(txnid_most_bits=TXN.most, txnid_least_bits=TXN.least),
)
ADDED = BaseCommand(
    type=Type.ADD_PARTITION_TO_TXN_RESPONSE, add_partition_to_txn_response=CommandAddPartitionToTxnResponse()
)
ENDED = BaseCommand(type=Type.END_TXN_RESPONSE, end_txn_response=CommandEndTxnResponse())


def refused_end(error: ServerError) -> BaseCommand:
    return BaseCommand(type=Type.END_TXN_RESPONSE, end_txn_response=CommandEndTxnResponse(error=error, message="no"))


def refused_add(error: ServerError) -> BaseCommand:
    return BaseCommand(
        type=Type.ADD_PARTITION_TO_TXN_RESPONSE,
        add_partition_to_txn_response=CommandAddPartitionToTxnResponse(error=error, message="no"),
    )


def test_open_add_send_commit() -> None:
    transaction = Transaction()
    request = transaction.open(3, 60_000)
    assert (request.type, request.new_txn.tc_id, request.new_txn.txn_ttl_seconds) == (Type.NEW_TXN, 3, 60_000)
    assert transaction.receive(OPENED, "open") is State.OPEN
    assert transaction.txn == TXN
    added = transaction.add(["a", "b"]).add_partition_to_txn
    assert (added.txnid_most_bits, added.txnid_least_bits, list(added.partitions)) == (TXN.most, TXN.least, ["a", "b"])
    assert transaction.receive(ADDED, "add") is State.OPEN
    transaction.send()
    end = transaction.end(commit=True).end_txn
    assert (end.txnid_most_bits, end.txnid_least_bits, end.txn_action) == (TXN.most, TXN.least, TxnAction.COMMIT)
    assert transaction.receive(ENDED, "commit") is State.COMMITTED


def test_a_transaction_without_an_answer_has_no_id() -> None:
    transaction = Transaction()
    transaction.open(0, 1)
    transaction.lost()
    assert transaction.state is State.UNOPENED
    with pytest.raises(LookupError):
        _ = transaction.txn


@pytest.mark.parametrize("commit", [True, False])
def test_no_send_and_no_new_partition_once_the_end_was_asked_for(commit: bool) -> None:
    transaction = Transaction(TXN)
    transaction.end(commit=commit)
    with pytest.raises(OutOfTurn):
        transaction.send()
    with pytest.raises(OutOfTurn):
        transaction.add(["a"])


def test_not_found_means_over_one_way_or_the_other() -> None:
    transaction = Transaction(TXN)
    transaction.end(commit=True)
    with pytest.raises(Refused, match="TransactionNotFound"):
        transaction.receive(refused_end(ServerError.TransactionNotFound), "commit")
    assert transaction.state is State.OVER


@pytest.mark.parametrize("error", [ServerError.InvalidTxnStatus, ServerError.TransactionCoordinatorNotFound])
def test_any_other_refusal_of_a_commit_leaves_it_in_doubt_and_both_ends_open(error: ServerError) -> None:
    for commit in (True, False):
        transaction = Transaction(TXN)
        transaction.end(commit=True)
        with pytest.raises(Refused):
            transaction.receive(refused_end(error), "commit")
        assert transaction.state is State.IN_DOUBT
        transaction.end(commit=commit)


def test_after_a_lost_abort_only_abort_may_follow() -> None:
    transaction = Transaction(TXN)
    transaction.end(commit=False)
    transaction.lost()
    assert transaction.state is State.ABORT_UNSURE
    with pytest.raises(OutOfTurn):
        transaction.end(commit=True)
    transaction.end(commit=False)
    assert transaction.receive(ENDED, "abort") is State.ABORTED


@pytest.mark.parametrize(
    ("error", "state"),
    [(ServerError.InvalidTxnStatus, State.SPOILED), (ServerError.TransactionNotFound, State.OVER)],
)
def test_a_refused_partition_spoils_the_transaction(error: ServerError, state: State) -> None:
    transaction = Transaction(TXN)
    transaction.add(["a"])
    with pytest.raises(Refused):
        transaction.receive(refused_add(error), "add")
    assert transaction.state is state
    with pytest.raises(OutOfTurn):
        transaction.send()


def test_a_partition_without_an_answer_leaves_only_abort() -> None:
    transaction = Transaction(TXN)
    transaction.add(["a"])
    transaction.lost()
    with pytest.raises(OutOfTurn):
        transaction.end(commit=True)
    assert transaction.end(commit=False).end_txn.txn_action == TxnAction.ABORT


def test_a_coordinator_that_loads_is_asked_again() -> None:
    acquaintance = CoordinatorHandshake(2)
    loading = CommandTcClientConnectResponse(error=ServerError.TransactionCoordinatorNotFound, message="loading")
    assert acquaintance.connect().tc_client_connect_request.tc_id == 2
    answer = BaseCommand(type=Type.TC_CLIENT_CONNECT_RESPONSE, tc_client_connect_response=loading)
    assert acquaintance.receive(answer) is TopicState.WAITING
    acquaintance.connect()
    good = BaseCommand(
        type=Type.TC_CLIENT_CONNECT_RESPONSE, tc_client_connect_response=CommandTcClientConnectResponse()
    )
    assert acquaintance.receive(good) is TopicState.CONNECTED


def test_a_coordinator_that_refuses_is_not_asked_again_by_itself() -> None:
    acquaintance = CoordinatorHandshake(2)
    acquaintance.connect()
    no = CommandTcClientConnectResponse(error=ServerError.NotAllowedError, message="no")
    with pytest.raises(Refused, match="NotAllowedError"):
        acquaintance.receive(BaseCommand(type=Type.TC_CLIENT_CONNECT_RESPONSE, tc_client_connect_response=no))
    assert acquaintance.state is TopicState.REFUSED


def test_a_moved_coordinator_and_a_lost_connection_need_a_new_acquaintance() -> None:
    for leave in (CoordinatorHandshake.moved, CoordinatorHandshake.lost):
        acquaintance = CoordinatorHandshake(0)
        leave(acquaintance)  # nothing to leave yet
        acquaintance.connect()
        acquaintance.receive(
            BaseCommand(
                type=Type.TC_CLIENT_CONNECT_RESPONSE, tc_client_connect_response=CommandTcClientConnectResponse()
            )
        )
        leave(acquaintance)
        assert acquaintance.state is TopicState.APART
