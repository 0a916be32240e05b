"""Whether a broker hides the messages of open and of aborted transactions.

A broker that was started without transactions does not know of them. It delivers all messages alike, those of
transactions among them (measured on 4.2.4). What it tells of the end of a topic counts them too. Where somebody has
switched transactions off, a reader would take the rows of each aborted try for committed ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from eos.errors import RefusedForGood
from eos.pulsar.net.connection import Connection
from eos.pulsar.protocol.coordinator import ask_for_transactions, has_no_transactions
from eos.pulsar.wire.entry import Entry

_hides: WeakKeyDictionary[Connection, bool] = WeakKeyDictionary()


def hides_uncommitted(connection: Connection) -> bool:
    """Whether the broker of a connection has transactions. It is asked once. Raises ConnectionLost, Unanswered."""
    if connection not in _hides:
        answer = connection.ask(ask_for_transactions(), f"ask {connection.broker} for transactions")
        _hides[connection] = not has_no_transactions(answer)
    return _hides[connection]


def refuse_uncommitted(topic: str, connection: Connection, entries: Iterable[Entry]) -> None:
    """Refuse entries of transactions from a broker that does not know whether they are committed.

    Raises RefusedForGood, ConnectionLost, Unanswered.
    """
    if _hides.get(connection):
        return
    first = next((one for one in entries if one.transactional), None)
    if first is not None and not hides_uncommitted(connection):
        raise RefusedForGood(
            f"read {topic}",
            "NotAllowedError",
            f"{connection.broker} was started without transactions",
            f"Entry {first.id} is of a transaction, and this broker delivers entries of aborted and of open "
            "transactions as if they were committed. Set transactionCoordinatorEnabled=true in broker.conf of each "
            "broker, and restart the brokers",
        )
