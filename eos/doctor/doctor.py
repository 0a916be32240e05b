"""Finding the partitions whose readers are held up, and by what; freeing those that no transaction will ever free.

Readers of a partition get what lies before its first open transaction. Two things look alike from their side:

- waiting: a coordinator has the transaction open. It ends with its batch, by its sink's successor, by `eos sink abort`,
  or by its time-out.
- frozen: no coordinator knows it any longer. A frame arrived after the transaction's end, and opened it again on this
  partition alone. The partition is free once a later transaction of the same coordinator ends there, since that end
  carries the low watermark below which the broker aborts what it finds (TopicTransactionBuffer.handleLowWaterMark); a
  transaction that is still open in that coordinator holds the watermark back. The sink's next batch there does it, and
  so does an empty transaction, which is how `heal` does it.

Healing a partition on which the transaction was *committed* hides its rows from every new reader: the broker filters
aborted transactions by their id. Nothing can prevent that any longer, so the command says so, and does it only on
demand.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from eos.commit.control_log import Intent, Marker, Record
from eos.commit.control_topic import CONTROL, abort_command
from eos.commit.log_reader import read_log
from eos.commit.ports import MessagePort
from eos.commit.retry import ONE_READ, Retry
from eos.commit.transaction import ask, open_transaction
from eos.errors import DamagedLog, NetworkError, NewerVersion, Refused, TopicMissing, Unanswered
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.transaction_stats import OpenTransaction
from eos.pulsar.protocol.topics import namespace_of, persistent_name
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId

_HOUSEKEEPING_TTL_S = 30.0


class ReaderState(StrEnum):
    """Why readers of a partition wait."""

    WAITING = "waiting"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Trace:
    """The words of a sink's control log about a transaction.

    Attributes:
        sink: the sink's name.
        intent: the batch it was opened for.
        committed: its MARKER is readable; None where that is not known, since the control log could not be read whole.
    """

    sink: str
    intent: Intent
    committed: bool | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A partition whose readers are held up.

    Attributes:
        partition: the physical topic.
        state: whether a coordinator still knows the transaction.
        txn: the first transaction that holds it; None when the broker does not tell.
        opened: what its coordinator knows of it; None when that has forgotten it.
        trace: which sink opened it, and for which batch; None when no control log of the namespace names it.
        age_s: seconds since it was opened; None where that is not known.
        unread: sinks of the namespace whose control logs could not be read to their ends, where none of the others
            has the transaction as one that is not committed.
        not_told: why the broker could not read the entry that holds it; "" where it could.
    """

    partition: str
    state: ReaderState
    txn: TxnId | None
    opened: OpenTransaction | None
    trace: Trace | None
    age_s: float | None = None
    unread: tuple[str, ...] = ()
    not_told: str = ""

    def lasts(self, older_than_s: float) -> bool:
        """Whether readers wait for something that is not known to be younger."""
        return self.age_s is None or self.age_s >= older_than_s

    @property
    def loses_rows(self) -> bool:
        """Whether healing hides rows that were committed, or may do so."""
        committed = self.trace is not None and self.trace.committed is True
        return self.state is ReaderState.FROZEN and (committed or bool(self.unread))

    @property
    def remedy(self) -> str:
        """The remedy, in words."""
        if self.state is ReaderState.WAITING:
            ends = f"It ends by itself {self.opened.ttl_ms / 1000:.0f} s after it was opened" if self.opened else ""
            if self.trace is not None:
                abort = abort_command(self.trace.sink, namespace_of(self.partition))
                return f"{ends}. If the sink's driver is dead, end it with {abort}"
            return f"{ends}. No sink of this namespace opened it"
        if self.loses_rows and self.unread:
            return (
                f"The control log of {' and of '.join(self.unread)} could not be read to its end. Whether the "
                "transaction's rows here were committed is not known. If they were, healing hides them from readers "
                "that start later. Call eos doctor again. If the log stays unreadable, eos sink list tells why"
            )
        if self.loses_rows:
            return (
                "Its rows here were committed, and a frame came after that. Healing hides them from readers that start "
                "later, and the sink's next batch here heals, too. Stop its query, write these rows again, then heal "
                "with --accept-loss"
            )
        return f"Stop its query, if one runs. Then eos doctor --heal {self.partition}"


class _Traces(NamedTuple):
    """The words of a namespace's control logs about transactions, and the sinks whose logs could not be read whole."""

    found: dict[TxnId, Trace]
    unread: tuple[str, ...]


@dataclass
class Doctor:
    """Looks at topics and heals them.

    Args:
        client: the cluster.
        admin: its admin API.
        patience_s: the longest wait for one partition to become free. Default 60.
    """

    client: Client
    admin: Admin
    patience_s: float = 60.0
    _traces: dict[str, _Traces] = field(default_factory=dict)

    def namespace(self, namespace: str) -> list[str]:
        """The partitions of every topic of a "tenant/namespace", control topics too."""
        return sorted(self.admin.topics(namespace))

    def partitions(self, topics: Iterable[str]) -> Iterator[str]:
        """The physical topics of these topics. Raises TopicMissing, and InvalidInput for a wrong name."""
        for topic in map(persistent_name, topics):
            yield from self.client.physical_topics(topic)

    def look(self, partitions: Iterable[str]) -> list[Finding]:
        """Find those of these physical topics whose readers are held up.

        Readers wait for every batch that is being written, so the young ones are the healthy ones: see `Finding.lasts`.
        A topic that no broker has loaded has no readers, and is passed over. Raises NetworkError.
        """
        self._traces.clear()
        opened = {one.txn: one for one in self.admin.open_transactions()}
        found = (self._look_at(partition, opened) for partition in partitions)
        return [one for one in found if one is not None]

    def heal(self, finding: Finding) -> None:
        """Free a frozen partition, also from what has frozen it besides the transaction that was found.

        Raises:
            ValueError: it is not frozen.
            Unanswered: it stays frozen; the message says which open transactions may hold the watermark back.
        """
        if finding.state is not ReaderState.FROZEN:
            raise ValueError(f"{finding.partition} is {finding.state}. Only a frozen partition can be healed")
        patience = Retry(self.patience_s)
        while True:
            coordinators = self._coordinators(finding.txn)
            refusals = [self._end_an_empty_transaction(finding.partition, index) for index in coordinators]
            left = self._look_at(finding.partition, {one.txn: one for one in self.admin.open_transactions()})
            if left is None or left.state is ReaderState.WAITING:
                return
            finding = left
            if not patience.pause():
                raise Unanswered(
                    f"{finding.partition} is still frozen by transaction {finding.txn} after {self.patience_s:g} s. "
                    f"{self._held_back(finding.txn)}{''.join(f'. {refused}' for refused in refusals if refused)}"
                )

    def _look_at(self, partition: str, opened: dict[TxnId, OpenTransaction]) -> Finding | None:
        try:
            buffer = self.admin.buffer(partition)
            if not buffer.held_up:
                return None
            txn, not_told = self._holder(partition, buffer.readable_to)
        except TopicMissing:
            return None
        if txn is None:  # the look has taken a while: what is open may have changed
            known, open_here = None, any(partition in one.partitions for one in self.admin.open_transactions())
        else:  # opened, or ended, while we looked
            known, open_here = opened.get(txn) or self.admin.transaction(txn), False
        waits = known is not None or open_here
        if not waits and self._freed(partition):
            return None
        state = ReaderState.WAITING if waits else ReaderState.FROZEN
        age_s = None if known is None else max(0.0, time.time() - known.opened_ms / 1000)
        traces = self._traces_of(partition)
        trace = None if txn is None else traces.found.get(txn)
        told = trace is not None and trace.committed is not None
        return Finding(partition, state, txn, known, trace, age_s, () if told else traces.unread, not_told)

    def _holder(self, partition: str, readable_to: MessageId) -> tuple[TxnId | None, str]:
        """Return the transaction that follows what readers get, and why the broker cannot read its entry, or ""."""
        try:
            return self.admin.transaction_behind(partition, readable_to), ""
        except Refused as refused:
            return None, str(refused)

    def _freed(self, partition: str) -> bool:
        """Whether a partition that seemed frozen was only about to be freed: an end takes a moment to arrive."""
        for _ in range(5):
            if not self.admin.buffer(partition).held_up:
                return True
            time.sleep(0.1)
        return False

    def _coordinators(self, txn: TxnId | None) -> Iterable[int]:
        return range(self.client.coordinators()) if txn is None else (txn.coordinator,)

    def _end_an_empty_transaction(self, partition: str, index: int) -> Refused | None:
        """Return what a coordinator refuses that moves: the partition stays frozen, and the next round tries again."""
        try:
            with open_transaction(self.client, index, [partition], _HOUSEKEEPING_TTL_S, lambda: Retry(0)) as txn:
                pass  # empty: its end alone frees the partition
        except Refused as refused:
            return refused
        error = ask(self.client, txn, commit=True).error
        if error is not None and not isinstance(error, Refused):
            raise error
        return error

    def _held_back(self, txn: TxnId | None) -> str:
        older = [one for one in self.admin.open_transactions() if txn is None or one.txn.most == txn.most]
        if not older:
            return "No transaction is open in its coordinator"
        named = ", ".join(f"{one.txn} on {', '.join(one.partitions) or 'no topic'}" for one in older)
        return f"These open transactions of its coordinator may hold the watermark back: {named}"

    def _traces_of(self, partition: str) -> _Traces:
        namespace = namespace_of(partition)
        if namespace not in self._traces:
            self._traces[namespace] = self._read_traces(namespace)
        return self._traces[namespace]

    def _read_traces(self, namespace: str) -> _Traces:
        found: dict[TxnId, Trace] = {}
        unread: list[str] = []
        for topic in self.admin.topics(namespace):
            name = topic.rpartition("/")[2]
            if not name.startswith(CONTROL):
                continue
            sink = name.removeprefix(CONTROL)
            intents: list[Intent] = []
            committed: set[TxnId] = set()

            def note(
                record: Record,
                message: MessagePort,
                intents: list[Intent] = intents,
                committed: set[TxnId] = committed,
            ) -> None:
                if isinstance(record, Intent):
                    intents.append(record)
                elif isinstance(record, Marker):
                    committed.add(record.txn)

            without_marker: bool | None = False
            try:
                read_log(self.client, topic, ONE_READ, each=note).check_whole(None)
            except (DamagedLog, NewerVersion, NetworkError):
                # The records that were read until then still tell which sink a transaction belongs to.
                without_marker = None
                unread.append(sink)
            for intent in intents:
                found[intent.txn] = Trace(sink, intent, True if intent.txn in committed else without_marker)
        return _Traces(found, tuple(unread))


def summary(finding: Finding) -> dict[str, object]:
    """The part of `eos doctor --json` about a finding."""
    trace, opened = finding.trace, finding.opened
    return {
        "partition": finding.partition,
        "state": str(finding.state),
        "transaction": None if finding.txn is None else str(finding.txn),
        "age_s": finding.age_s,
        "opened_ms": None if opened is None else opened.opened_ms,
        "ttl_ms": None if opened is None else opened.ttl_ms,
        "sink": None if trace is None else trace.sink,
        "batch_id": None if trace is None else trace.intent.batch_id,
        "query_id": None if trace is None else trace.intent.query_id,
        "committed": None if trace is None else trace.committed,
        "remedy": finding.remedy,
    }
