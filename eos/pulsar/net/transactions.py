"""The knowledge of this process about its transactions.

Producers and coordinators of one client share it, so that a send is refused here as soon as
the transaction's end was asked for in this process.
"""

from __future__ import annotations

import threading

from eos.pulsar.protocol.transaction import Transaction
from eos.pulsar.wire.txn import TxnId

REMEMBERED = 1024
"""How many transactions are kept; the oldest are forgotten."""


class Tracked:
    """A transaction and who may use it.

    Attributes:
        turn: held while a request about it is under way.
        guard: held while its state changes; never while waiting.
    """

    def __init__(self, transaction: Transaction) -> None:
        """Args: the transaction, with an id."""
        self.transaction = transaction
        self.turn = threading.Lock()
        self.guard = threading.Lock()


class Transactions:
    """The transactions of one client, by id."""

    def __init__(self) -> None:
        self._known: dict[TxnId, Tracked] = {}
        self._guard = threading.Lock()

    def of(self, txn: TxnId) -> Tracked:
        """Return what is known of it; a transaction never seen here is joined."""
        with self._guard:
            known = self._known.get(txn)
            return known if known is not None else self._remember(Transaction(txn))

    def opened(self, transaction: Transaction) -> None:
        """Remember a transaction to which a coordinator has given its id just now.

        What was known of that id is forgotten. It was another transaction: of a Pulsar whose place at the service URL a
        new one has taken, or of a coordinator that has lost its log, which `Owner.open` refuses.
        """
        with self._guard:
            self._known.pop(transaction.txn, None)
            self._remember(transaction)

    def _remember(self, transaction: Transaction) -> Tracked:
        tracked = self._known[transaction.txn] = Tracked(transaction)
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return tracked

    def sending(self, txn: TxnId) -> None:
        """Note a send. Raises OutOfTurn once an end of the transaction was asked for."""
        tracked = self.of(txn)
        with tracked.guard:
            tracked.transaction.send()
