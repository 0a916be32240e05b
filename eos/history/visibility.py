"""Which entries of a range a reader may see, by what is stored alone. Pure.

Let T be a moment, M the broker's last readable position at T, and L a last confirmed entry that was taken at T or
later. An entry p with p <= M is visible if it is not a marker and

- it belongs to no transaction, or
- the first marker of its transaction after p, and not after L, is a commit.

Why this is right. When p was added, its transaction was aborted already, or it was open with its first entry at p or
before. M lies before the first entry of the first transaction that is open. So p <= M means that its transaction was
aborted before p was added, and then no marker of it follows; or that it ended between p and M's moment, and then its
marker follows p and is not after L, since L was taken later. A marker that follows the first one can only be the end of
a late send, which came after p's transaction had ended.

The rule looks only after p, and what is stored after p and up to L never changes. So tasks that are tried again
agree, and a range may be cut at any entry.

In one way the rule differs from the broker: a transaction that was committed, that a late send opened again, and that
the broker then aborted by its low watermark. The broker hides the whole committed transaction from then on, and the
rule shows it. A sink of this library never sends late.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.txn import TxnId

COMMIT, ABORT = 21, 22
"""MarkerType of Pulsar: TXN_COMMIT and TXN_ABORT. Other markers belong to replicated subscriptions."""


class TooManyUndecided(Exception):
    """The entries of transactions whose marker has not come yet take more bytes than may be held."""


@dataclass(slots=True)
class _Held:
    entry: Entry
    visible: bool | None


class Visibility:
    """Takes all entries of a range in order, and those after it for their markers; gives those that are visible.

    Attributes:
        last: the last entry of the range.
    """

    def __init__(self, last: EntryId, max_bytes: int) -> None:
        """Args: the last entry of the range, and how many bytes may wait for a marker, themselves or behind others."""
        self.last = last
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._held: deque[_Held] = deque()
        self._undecided: dict[TxnId, list[_Held]] = defaultdict(list)

    @property
    def undecided(self) -> bool:
        """Whether a marker is still waited for: then the entries after the range are needed too."""
        return bool(self._undecided)

    def take(self, entry: Entry) -> Iterator[Entry]:
        """Take the next entry as it is stored; yield what is known to be visible now. Raises TooManyUndecided."""
        marker = entry.metadata.marker_type if entry.metadata.HasField("marker_type") else None
        if marker in (COMMIT, ABORT):
            self._decide(_transaction(entry), marker == COMMIT)
        elif marker is None and entry.id <= self.last:
            self._hold(entry)
        yield from self._known()

    def end(self) -> Iterator[Entry]:
        """Say that the last confirmed entry has been taken; yield the rest that is visible."""
        for transaction in list(self._undecided):
            self._decide(transaction, visible=False)
        yield from self._known()

    def _hold(self, entry: Entry) -> None:
        held = _Held(entry, None if entry.metadata.HasField("txnid_most_bits") else True)
        if held.visible is None:
            self._undecided[_transaction(entry)].append(held)
        self._held.append(held)
        self._held_bytes += entry.size
        if self._held_bytes > self._max_bytes and self._held[0].visible is None:
            raise TooManyUndecided(
                f"{self._held_bytes} bytes of entries wait for the end of the transaction of {self._held[0].entry}"
            )

    def _decide(self, transaction: TxnId, visible: bool) -> None:
        for held in self._undecided.pop(transaction, ()):
            held.visible = visible

    def _known(self) -> Iterator[Entry]:
        while self._held and self._held[0].visible is not None:
            held = self._held.popleft()
            self._held_bytes -= held.entry.size
            if held.visible:
                yield held.entry


def _transaction(entry: Entry) -> TxnId:
    return TxnId(entry.metadata.txnid_most_bits, entry.metadata.txnid_least_bits)
