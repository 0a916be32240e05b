"""The registration of a client at a transaction coordinator.

A coordinator is a partition of a system topic, so `lookup` finds its broker. It answers nothing before
TC_CLIENT_CONNECT. After a broker crash it is not even loaded until a client asks for it by that request. While it
loads, it answers TransactionCoordinatorNotFound or ServiceNotReady, and the client asks again. The same answers to a
later request mean that the coordinator has moved. Then the client looks it up again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from eos.errors import Refused
from eos.pulsar.protocol.machine import Machine, TransitionTable
from eos.pulsar.protocol.requests import Type, granted
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandEndTxn, CommandTcClientConnectRequest, TxnAction
from eos.pulsar.wire.txn import TxnId

LOADING = frozenset({"TransactionCoordinatorNotFound", "ServiceNotReady"})
"""The codes of a coordinator that is not, or no longer, on this broker."""


_NOWHERE: Final = TxnId(2**31 - 1, 0)
"""A transaction of a coordinator that no cluster has."""

_OFF: Final = "Transactions are not enabled"
"""The words by which a broker refuses requests about transactions that was started without them (ServerCnx)."""


def ask_for_transactions() -> BaseCommand:
    """Return a request that tells whether a broker was started with transactions, and changes nothing.

    A broker with transactions answers that it does not have the coordinator, without a line in its log. To
    TC_CLIENT_CONNECT one that does not have the coordinator logs an error with a stack trace (4.2.4).
    """
    return BaseCommand(
        type=Type.END_TXN,
        end_txn=CommandEndTxn(
            txnid_most_bits=_NOWHERE.most, txnid_least_bits=_NOWHERE.least, txn_action=TxnAction.ABORT
        ),
    )


def has_no_transactions(answer: BaseCommand) -> bool:
    """Whether a broker that answers so was started without transactions."""
    try:
        granted(answer, "ask for transactions")
    except Refused as refused:
        return _OFF in refused.detail
    return False


class State(StrEnum):
    """Where the acquaintance stands."""

    APART = "apart"
    CONNECTING = "connecting"
    WAITING = "waiting"
    CONNECTED = "connected"
    REFUSED = "refused"


class Input(StrEnum):
    """Its inputs."""

    CONNECT = "connect"
    ACCEPTED = "accepted"
    NOT_LOADED = "not loaded"
    REFUSED = "refused"
    MOVED = "moved"
    LOST = "connection lost"


COORDINATOR: TransitionTable[State, Input] = TransitionTable(
    name="coordinator",
    start=State.APART,
    ours=frozenset({Input.CONNECT}),
    moves={
        (State.APART, Input.CONNECT): State.CONNECTING,
        (State.CONNECTING, Input.ACCEPTED): State.CONNECTED,
        (State.CONNECTING, Input.NOT_LOADED): State.WAITING,
        (State.CONNECTING, Input.REFUSED): State.REFUSED,
        (State.CONNECTING, Input.LOST): State.APART,
        (State.WAITING, Input.CONNECT): State.CONNECTING,
        (State.CONNECTED, Input.MOVED): State.APART,
        (State.CONNECTED, Input.LOST): State.APART,
        (State.REFUSED, Input.CONNECT): State.CONNECTING,
    },
)


class CoordinatorHandshake:
    """One client's state with one coordinator."""

    def __init__(self, index: int) -> None:
        """Args: the coordinator's index."""
        self._machine = Machine(COORDINATOR)
        self._index = index

    @property
    def state(self) -> State:
        """Where the acquaintance stands."""
        return self._machine.state

    def connect(self) -> BaseCommand:
        """Return TC_CLIENT_CONNECT."""
        self._machine.take(Input.CONNECT)
        return BaseCommand(
            type=Type.TC_CLIENT_CONNECT_REQUEST,
            tc_client_connect_request=CommandTcClientConnectRequest(tc_id=self._index),
        )

    def receive(self, answer: BaseCommand) -> State:
        """Take the answer to TC_CLIENT_CONNECT; in WAITING, ask again a little later. Raises Refused."""
        try:
            granted(answer, f"connect to transaction coordinator {self._index}")
        except Refused as refused:
            if refused.code in LOADING:
                return self._machine.take(Input.NOT_LOADED)
            self._machine.take(Input.REFUSED)
            raise
        return self._machine.take(Input.ACCEPTED)

    def moved(self) -> None:
        """Note that a later request was answered with one of the LOADING codes."""
        if self._machine.allows(Input.MOVED):
            self._machine.take(Input.MOVED)

    def lost(self) -> None:
        """Note that the connection is gone."""
        if self._machine.allows(Input.LOST):
            self._machine.take(Input.LOST)
