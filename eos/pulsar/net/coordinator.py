"""A transaction coordinator, as a client sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf

from eos.errors import Refused, Unanswered
from eos.pulsar.net.broker_lookup import BrokerLookup, coordinators_allowed
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.transactions import Tracked, Transactions
from eos.pulsar.protocol.coordinator import LOADING, CoordinatorHandshake, State
from eos.pulsar.protocol.topics import COORDINATOR_TOPIC, full_name, partition_name
from eos.pulsar.protocol.transaction import Transaction
from eos.pulsar.wire.pulsar_pb2 import BaseCommand
from eos.pulsar.wire.txn import TxnId


class Coordinator:
    """One coordinator. Thread-safe.

    After a lost connection the next call connects again; the call under way raises ConnectionLost. No request is ever
    repeated here. The caller decides whether to ask again, since it knows what is at stake.

    Attributes:
        index: its number.
    """

    def __init__(self, finder: BrokerLookup, transactions: Transactions, index: int) -> None:
        """Args: finds brokers; the client's transactions; the coordinator's number."""
        self.index = index
        self._finder = finder
        self._transactions = transactions
        self._acquaintance = CoordinatorHandshake(index)
        self._connection: Connection | None = None
        self._moved_from: Connection | None = None
        # Held while the acquaintance changes. A thread that learns late that its connection is gone, or that the
        # coordinator has moved, leaves that to the next call: another one may be connecting again.
        self._connecting = threading.Lock()

    def connect(self) -> None:
        """Connect now, which also makes a coordinator load that a broker crash has unloaded.

        Raises Unanswered when it has not loaded within the request time-out.
        """
        self._connected()

    def new_transaction(self, ttl_ms: int) -> TxnId:
        """Open a transaction that the coordinator aborts by itself after `ttl_ms` milliseconds.

        Raises Refused, Unanswered, ConnectionLost.
        """
        transaction = Transaction()
        asked = f"open a transaction at coordinator {self.index}"
        try:
            self._exchange(lambda: transaction.open(self.index, ttl_ms), transaction, asked, None)
        except Unanswered as error:
            raise Unanswered(
                f"{error}. A coordinator with too many open transactions does not answer "
                "(maxActiveTransactionsPerCoordinator)"
            ) from error
        self._transactions.opened(transaction)
        return transaction.txn

    def add_partitions(self, txn: TxnId, topics: Sequence[str], until: float = inf) -> None:
        """Make these physical partitions part of the transaction, before the first send to them.

        Waits at most to `until`, an instant of `time.monotonic`. The transaction's end waits as long, since the
        requests about a transaction go one after the other.

        Raises Refused (a finished transaction: "InvalidTxnStatus" or "TransactionNotFound"),
        Unanswered, ConnectionLost, OutOfTurn.
        """
        names = [full_name(topic) for topic in topics]
        tracked = self._transactions.of(txn)
        asked = f"add {len(names)} partitions to transaction {txn} at coordinator {self.index}"
        with _turn_of(tracked, asked, until):
            self._exchange(
                lambda: tracked.transaction.add(names), tracked.transaction, asked, None, tracked.guard, until
            )

    def end(self, txn: TxnId, commit: bool, sent: Callable[[], None] | None = None) -> None:
        """Commit or abort the transaction.

        Args: its id; True to commit, False to abort; called once the socket has taken the request.
        Raises Refused ("TransactionNotFound": it is over, one way or the other), Unanswered,
        ConnectionLost, OutOfTurn (a commit after an abort was asked for in this process).
        """
        tracked = self._transactions.of(txn)
        asked = f"{'commit' if commit else 'abort'} transaction {txn} at coordinator {self.index}"
        with tracked.turn:
            self._exchange(
                lambda: tracked.transaction.end(commit=commit), tracked.transaction, asked, sent, tracked.guard
            )

    def _exchange(
        self,
        request: Callable[[], BaseCommand],
        transaction: Transaction,
        asked: str,
        sent: Callable[[], None] | None,
        guard: threading.Lock | None = None,
        until: float = inf,
    ) -> None:
        guard = guard if guard is not None else threading.Lock()
        connection = self._connected()
        with guard:
            command = request()
        try:
            answer = connection.ask(command, asked, max(0.0, until - time.monotonic()), sent=sent)
        except BaseException:  # also an interrupt: the request may have gone out
            with guard:
                transaction.lost()
            raise
        try:
            with guard:
                transaction.receive(answer, asked)
        except Refused as refused:
            if refused.code in LOADING:
                self._moved_from = connection
            raise

    def _connected(self) -> Connection:
        with self._connecting:
            if self._connection is not None and not self._connection.alive:
                self._acquaintance.lost()
            elif self._connection is not None and self._moved_from is self._connection:
                self._acquaintance.moved()
            self._moved_from = None
            if self._connection is None or self._acquaintance.state is not State.CONNECTED:
                self._connection = self._finder.patiently(
                    f"connect to transaction coordinator {self.index}", self._connect_once
                )
            return self._connection

    def _connect_once(self) -> Connection:
        asked = f"connect to transaction coordinator {self.index}"
        with coordinators_allowed():
            connection = self._finder.owner(partition_name(COORDINATOR_TOPIC, self.index))
        try:
            answer = connection.ask(self._acquaintance.connect(), asked)
        except BaseException:  # also an interrupt: the next call is to connect again
            self._acquaintance.lost()
            raise
        if self._acquaintance.receive(answer) is State.WAITING:
            raise Refused(asked, "TransactionCoordinatorNotFound", "it is not loaded yet")
        return connection


@contextmanager
def _turn_of(tracked: Tracked, asked: str, until: float) -> Iterator[None]:
    """Wait until no request about a transaction is under way. Raises Unanswered where one still is at `until`."""
    if not tracked.turn.acquire(timeout=-1 if until == inf else max(0.0, until - time.monotonic())):
        raise Unanswered(f"{asked}: an earlier request about this transaction was not answered in time")
    try:
        yield
    finally:
        tracked.turn.release()
