"""A transaction, as far as one process can know it.

    NEW_TXN gives the id; a task on another machine joins by that id. ADD_PARTITION_TO_TXN
    names each partition before the first send to it. END_TXN commits or aborts.

The coordinator can't say everything, which decides the shape of the table:

- It keeps no history. TransactionNotFound to END_TXN means that the transaction is over, one way or the other. So OVER
  is a state of its own, not a kind of committed.
- Any other refusal, or no answer, to END_TXN(commit) leaves the outcome open (IN_DOUBT). Then the client may ask for
  both ends, in any order, until one is answered.
- After an END_TXN(abort) without an answer only abort may follow, since a commit might still win.
- After a refused or lost ADD_PARTITION_TO_TXN a send to that partition would be lost. So from SPOILED only abort leads
  on.
- No send may follow once the client has asked for an end. The broker would accept it, and the send would destroy the
  batch if the transaction had been committed.

Source of the answers: TransactionMetadataStoreService and TransactionBuffer of the broker,
and tests/contract/.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from eos.errors import Refused
from eos.pulsar.protocol.machine import Machine, TransitionTable
from eos.pulsar.protocol.requests import Type, granted
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandAddPartitionToTxn,
    CommandEndTxn,
    CommandNewTxn,
    TxnAction,
)
from eos.pulsar.wire.txn import TxnId


class State(StrEnum):
    """The knowledge of this process about the transaction."""

    NEW = "new"
    OPENING = "opening"
    UNOPENED = "unopened"
    OPEN = "open"
    ADDING = "adding"
    SPOILED = "spoiled"
    COMMITTING = "committing"
    ABORTING = "aborting"
    COMMITTED = "committed"
    ABORTED = "aborted"
    IN_DOUBT = "in doubt"
    ABORT_UNSURE = "abort unsure"
    OVER = "over"
    ASKING = "asking again"


class Input(StrEnum):
    """Its inputs."""

    OPEN = "open"
    JOIN = "join"
    ADD = "add partitions"
    SEND = "send"
    COMMIT = "commit"
    ABORT = "abort"
    OPENED = "opened"
    ADDED = "added"
    ENDED = "ended"
    NOT_FOUND = "not found"
    REFUSED = "refused"
    LOST = "no answer"


TRANSACTION: TransitionTable[State, Input] = TransitionTable(
    name="transaction",
    start=State.NEW,
    ours=frozenset({Input.OPEN, Input.JOIN, Input.ADD, Input.SEND, Input.COMMIT, Input.ABORT}),
    moves={
        (State.NEW, Input.OPEN): State.OPENING,
        (State.NEW, Input.JOIN): State.OPEN,
        (State.OPENING, Input.OPENED): State.OPEN,
        (State.OPENING, Input.REFUSED): State.UNOPENED,
        (State.OPENING, Input.LOST): State.UNOPENED,
        (State.OPEN, Input.SEND): State.OPEN,
        (State.OPEN, Input.ADD): State.ADDING,
        (State.OPEN, Input.COMMIT): State.COMMITTING,
        (State.OPEN, Input.ABORT): State.ABORTING,
        (State.ADDING, Input.SEND): State.ADDING,
        (State.ADDING, Input.ADDED): State.OPEN,
        (State.ADDING, Input.NOT_FOUND): State.OVER,
        (State.ADDING, Input.REFUSED): State.SPOILED,
        (State.ADDING, Input.LOST): State.SPOILED,
        (State.SPOILED, Input.ABORT): State.ABORTING,
        (State.COMMITTING, Input.ENDED): State.COMMITTED,
        (State.COMMITTING, Input.NOT_FOUND): State.OVER,
        (State.COMMITTING, Input.REFUSED): State.IN_DOUBT,
        (State.COMMITTING, Input.LOST): State.IN_DOUBT,
        (State.ABORTING, Input.ENDED): State.ABORTED,
        (State.ABORTING, Input.NOT_FOUND): State.OVER,
        (State.ABORTING, Input.REFUSED): State.ABORT_UNSURE,
        (State.ABORTING, Input.LOST): State.ABORT_UNSURE,
        (State.IN_DOUBT, Input.COMMIT): State.COMMITTING,
        (State.IN_DOUBT, Input.ABORT): State.ABORTING,
        (State.ABORT_UNSURE, Input.ABORT): State.ABORTING,
        (State.COMMITTED, Input.COMMIT): State.ASKING,
        (State.COMMITTED, Input.ABORT): State.ASKING,
        (State.ABORTED, Input.COMMIT): State.ASKING,
        (State.ABORTED, Input.ABORT): State.ASKING,
        (State.OVER, Input.COMMIT): State.ASKING,
        (State.OVER, Input.ABORT): State.ASKING,
        (State.ASKING, Input.ENDED): State.OVER,
        (State.ASKING, Input.NOT_FOUND): State.OVER,
        (State.ASKING, Input.REFUSED): State.OVER,
        (State.ASKING, Input.LOST): State.OVER,
    },
)


class Transaction:
    """One transaction in one process."""

    def __init__(self, txn: TxnId | None = None) -> None:
        """Args: the id of a transaction that was opened elsewhere, or None for one to be opened."""
        self._machine = Machine(TRANSACTION)
        self._txn = txn
        if txn is not None:
            self._machine.take(Input.JOIN)

    @property
    def state(self) -> State:
        """The knowledge of this process about the transaction."""
        return self._machine.state

    @property
    def txn(self) -> TxnId:
        """The id. Raises LookupError before the coordinator has given it."""
        if self._txn is None:
            raise LookupError("the transaction has no id yet")
        return self._txn

    def open(self, coordinator: int, ttl_ms: int) -> BaseCommand:
        """Return NEW_TXN. The field named `txn_ttl_seconds` carries milliseconds."""
        self._machine.take(Input.OPEN)
        return BaseCommand(type=Type.NEW_TXN, new_txn=CommandNewTxn(tc_id=coordinator, txn_ttl_seconds=ttl_ms))

    def add(self, topics: Sequence[str]) -> BaseCommand:
        """Return ADD_PARTITION_TO_TXN for these physical partitions."""
        self._machine.take(Input.ADD)
        return BaseCommand(
            type=Type.ADD_PARTITION_TO_TXN,
            add_partition_to_txn=CommandAddPartitionToTxn(
                txnid_most_bits=self.txn.most, txnid_least_bits=self.txn.least, partitions=topics
            ),
        )

    def send(self) -> None:
        """Note a send. Raises OutOfTurn once an end was asked for."""
        self._machine.take(Input.SEND)

    def end(self, *, commit: bool) -> BaseCommand:
        """Return END_TXN."""
        self._machine.take(Input.COMMIT if commit else Input.ABORT)
        return BaseCommand(
            type=Type.END_TXN,
            end_txn=CommandEndTxn(
                txnid_most_bits=self.txn.most,
                txnid_least_bits=self.txn.least,
                txn_action=TxnAction.COMMIT if commit else TxnAction.ABORT,
            ),
        )

    def receive(self, answer: BaseCommand, asked: str) -> State:
        """Take the answer to what was asked last. Raises Refused."""
        try:
            granted(answer, asked)
        except Refused as refused:
            not_found = refused.code == "TransactionNotFound" and self.state is not State.OPENING
            self._machine.take(Input.NOT_FOUND if not_found else Input.REFUSED)
            raise
        if answer.type == Type.NEW_TXN_RESPONSE:
            given = answer.new_txn_response
            self._txn = TxnId(given.txnid_most_bits, given.txnid_least_bits)
            return self._machine.take(Input.OPENED)
        return self._machine.take(Input.ADDED if answer.type == Type.ADD_PARTITION_TO_TXN_RESPONSE else Input.ENDED)

    def lost(self) -> None:
        """Note that no answer will come."""
        self._machine.take(Input.LOST)
