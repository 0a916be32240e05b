"""The answers of the admin API about transactions: those that are open, and what one partition knows of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId

_SETTLED: Final = ("Ready", "NoSnapshot")
"""The states of a buffer that knows its transactions (TopicTransactionBufferState). The others pass."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that its coordinator has not ended.

    Attributes:
        txn: its id.
        status: the coordinator's word: "OPEN", "COMMITTING" or "ABORTING".
        opened_ms: when it was opened, in milliseconds since 1970.
        ttl_ms: milliseconds after which the coordinator aborts it.
        partitions: the physical topics it has added.
    """

    txn: TxnId
    status: str
    opened_ms: int
    ttl_ms: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """The transactions of one partition, as its broker sees them.

    Attributes:
        state: "Ready" when it works; "NoSnapshot" before the first transaction.
        readable_to: the last position that readers get.
        last: the last position that is stored.
        ongoing: transactions that are open on this partition.
    """

    state: str
    readable_to: MessageId
    last: MessageId
    ongoing: int

    @property
    def known(self) -> bool:
        """Whether the figures count: a broker that loads the topic still looks for its transactions, and has none."""
        return self.state in _SETTLED

    @property
    def held_up(self) -> bool:
        """Whether readers wait before the end: for an open transaction, or frozen by a late send."""
        return self.ongoing > 0 and self.readable_to < self.last


def open_transaction_of(stats: dict[str, Any]) -> OpenTransaction:
    """Read what a coordinator says of a transaction."""
    return OpenTransaction(
        txn=TxnId.parse(stats["txnId"]),
        status=stats["status"],
        opened_ms=stats["openTimestamp"],
        ttl_ms=stats["timeoutAt"],
        partitions=tuple(sorted(stats["producedPartitions"])),
    )


def buffer_of(stats: dict[str, Any] | None, internal: dict[str, Any]) -> Buffer:
    """Read what a broker says of the transactions on a partition.

    Args: of its buffer, None: it has none, as the broker's own topics; its internal stats.
    """
    last = _position(internal["lastConfirmedEntry"])
    if stats is None:
        return Buffer("NoSnapshot", last, last, 0)
    return Buffer(
        state=stats["state"],
        readable_to=_position(stats["maxReadPosition"]),
        last=last,
        ongoing=stats["ongoingTxnSize"],
    )


def next_entry(internal: dict[str, Any], position: MessageId) -> MessageId | None:
    """Return where the first stored entry after a position lies; None: there is none. Args: internal stats; the place.

    A broker gives the number of entries of each ledger, and 0 for the one that it writes to, of which it names the
    last entry.
    """
    last = _position(internal["lastConfirmedEntry"])
    for one in sorted(internal["ledgers"], key=lambda one: int(one["ledgerId"])):
        ledger, entries = int(one["ledgerId"]), int(one["entries"])
        if ledger == last.ledger:
            entries = max(entries, last.entry + 1)
        first = position.entry + 1 if ledger == position.ledger else 0
        if ledger >= position.ledger and first < entries:
            return MessageId(ledger, first)
    return None


def _position(text: str) -> MessageId:
    ledger, entry = text.split(":")
    return MessageId(int(ledger), int(entry))
