"""Finding the partitions whose readers are held up, and by what; freeing those that no transaction will ever free.

Readers of a partition get what lies before its first open transaction. Three things look alike from their side:

- waiting: a coordinator has the transaction open. It ends with its batch, by its sink's successor, by `eos sink abort`,
  or by its time-out.
- frozen: no coordinator knows it any longer. A frame arrived after the transaction's end, and opened it again on this
  partition alone. The partition is free once a later transaction of the same coordinator ends there, since that end
  carries the low watermark below which the broker aborts what it finds (TopicTransactionBuffer.handleLowWaterMark); a
  transaction that is still open in that coordinator holds the watermark back. The sink's next batch there does it, and
  so does an empty transaction, which is how `heal` does it.
- unrecovered: the broker cannot find out which transactions are open, since a policy refuses its own reader. Readers
  wait for all that the partition has, until the policy is changed.

Healing a partition on which the transaction was *committed* hides its rows from every new reader: the broker filters
aborted transactions by their id. Nothing can prevent that any longer, so the command says so, and does it only on
demand. It does so, too, wherever no control log proves that the transaction was not committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from eos.commit.control_topic import abort_command
from eos.commit.retry import Retry
from eos.commit.transaction import ask, open_transaction
from eos.doctor.traces import Trace, Traces, read_traces
from eos.errors import ConnectionLost, NetworkError, Refused, RefusedForGood, TopicMissing, Unanswered
from eos.preflight.recovery import unreadable_snapshots
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import topic_not_loaded
from eos.pulsar.net.client import Client
from eos.pulsar.net.transaction_stats import Buffer, OpenTransaction
from eos.pulsar.protocol.topics import namespace_of, persistent_name
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId

_HOUSEKEEPING_TTL_S = 30.0
_PAUSE_S = 0.1
"""Between looks at a partition that may be about to be freed."""


SILENT: Final = (Unanswered, ConnectionLost)
"""The errors of a partition that gives no answer."""

_LOOK_AT: Final = "look at the transactions of"
_RECOVERING: Final = (
    "it is still recovering them. Ask again in a minute. If it is still at it then, look into the broker's log for "
    '"while recovering the transaction buffer", which names the topics that it cannot recover, and why'
)
"""The end of a refusal."""

_SILENT_IN_A_ROW: Final = 3
"""So many partitions in a row without an answer, each of which may cost a time-out, and no other one is asked."""


class NotAsked(Unanswered):
    """The partitions before this one gave no answer, so nothing was asked about it."""


class Unrecovered(RefusedForGood):
    """A policy keeps the broker from recovering the transactions of a partition. The advice names the policy."""


class ReaderState(StrEnum):
    """Why readers of a partition wait."""

    WAITING = "waiting"
    FROZEN = "frozen"
    UNRECOVERED = "unrecovered"


@dataclass(frozen=True, slots=True)
class Finding:
    """A partition whose readers are held up.

    Attributes:
        partition: the physical topic.
        state: whether a coordinator still knows the transaction.
        txn: the first transaction that holds it; None when the broker does not tell.
        opened: what its coordinator knows of it; None when that has forgotten it.
        trace: which sink opened it, and for which batch; None when no control log that was read names it.
        age_s: seconds since it was opened; None where that is not known.
        unread: sinks whose control logs could not be read to their ends, where no other log tells whether the
            transaction is committed.
        not_told: why the broker could not read the entry that holds it; "" where it could.
        policy: which policy keeps an unrecovered partition so, and the command that changes it; "" in other states.
    """

    partition: str
    state: ReaderState
    txn: TxnId | None
    opened: OpenTransaction | None
    trace: Trace | None
    age_s: float | None = None
    unread: tuple[str, ...] = ()
    not_told: str = ""
    policy: str = ""

    def lasts(self, older_than_s: float) -> bool:
        """Whether readers wait for something that is not known to be younger."""
        return self.age_s is None or self.age_s >= older_than_s

    @property
    def loses_rows(self) -> bool:
        """Whether healing hides rows that were committed, or may do so: only a log proves that they were not."""
        not_committed = self.trace is not None and self.trace.committed is False
        return self.state is ReaderState.FROZEN and not not_committed

    @property
    def remedy(self) -> str:
        """The remedy, in words."""
        if self.state is ReaderState.UNRECOVERED:
            return self.policy
        if self.state is ReaderState.WAITING:
            return self._end
        if not self.loses_rows:
            return f"Stop its query, if one runs. Then eos doctor --heal {self.partition}"
        if self.trace is not None and self.trace.committed:
            return (
                "Its rows here were committed, and a frame came after that. Healing hides them from readers that start "
                "later, and the sink's next batch here heals, too. Stop its query, write these rows again, then heal "
                "with --accept-loss"
            )
        known, do = self._not_known
        return (
            f"{known}. So it is not known whether its rows here were committed. If they were, healing hides them from "
            f"readers that start later. {do}. If it stays unknown, stop its query, if one runs, see whether readers "
            "need these rows, and heal with --accept-loss"
        )

    @property
    def _end(self) -> str:
        """How the transaction ends that readers wait for."""
        if self.opened is None:
            return (
                f"{self._not_named}. One that is open on the partition may be it. Call eos doctor again when that has "
                "ended"
            )
        ends = f"It ends by itself {self.opened.ttl_ms / 1000:.0f} s after it was opened"
        if self.trace is None:
            return f"{ends}. No control log that was read names it"
        return (
            f"{ends}. If the sink's driver is dead, end it with {abort_command(self.trace.sink, self.trace.namespace)}"
        )

    @property
    def _not_named(self) -> str:
        return "The broker does not name the transaction" + (f" ({self.not_told})" if self.not_told else "")

    @property
    def _not_known(self) -> tuple[str, str]:
        """What is known of a transaction that may be committed, and what to do."""
        if self.txn is None:
            return self._not_named, "Call eos doctor again when the broker can read the entry"
        if self.unread:
            return (
                f"The control log of {' and of '.join(self.unread)} could not be read to its end",
                "Call eos doctor again. If the log stays unreadable, eos sink list tells why, or readers of the log "
                "wait, too",
            )
        return (
            "No control log of the namespaces looked at names the transaction",
            "A sink may have written it whose control topic is in another namespace. Then name the topics, and give "
            "that namespace with --namespace. Another program may have written it, too",
        )


@dataclass
class Doctor:
    """Looks at topics and heals them.

    Args:
        client: the cluster.
        admin: its admin API.
        patience_s: the longest wait for one partition to become free. Default 60.
        log_namespaces: each "tenant/namespace" whose control logs are read besides those of a partition's own.
        note: gets a sentence about each partition that gives no answer, as soon as that is known.
    """

    client: Client
    admin: Admin
    patience_s: float = 60.0
    log_namespaces: tuple[str, ...] = ()
    note: Callable[[str], None] = lambda said: None
    _traces: dict[str, Traces] = field(default_factory=dict)
    _policies: dict[str, str | None] = field(default_factory=dict)

    def namespace(self, namespace: str) -> list[str]:
        """The partitions of every topic of a "tenant/namespace", control topics too."""
        return sorted(self.admin.topics(namespace))

    def partitions(self, topics: Iterable[str]) -> Iterator[str]:
        """The physical topics of these topics. Raises TopicMissing, and InvalidInput for a wrong name."""
        for topic in map(persistent_name, topics):
            yield from self.client.physical_topics(topic)

    def look(self, partitions: Iterable[str], failed: dict[str, NetworkError] | None = None) -> list[Finding]:
        """Find those of these physical topics whose readers are held up.

        Readers wait for every batch that is being written, so the young ones are the healthy ones: see `Finding.lasts`.
        A topic that no broker has loaded has no readers, and is passed over, unless it could not be recovered: a broker
        closes such a topic again and again.

        Args:
            partitions: the physical topics.
            failed: gets the error of each that could not be looked at, in place of what it held. After several without
                an answer in a row the rest are `NotAsked`. None: the first such error is raised.

        Raises NetworkError.
        """
        if failed is not None:
            failed.clear()
        self._policies.clear()
        opened = {one.txn: one for one in self._open_transactions()}
        found = []
        silent = 0
        for partition in partitions:
            if failed is not None and silent == _SILENT_IN_A_ROW:
                failed[partition] = NotAsked(f"the {_SILENT_IN_A_ROW} partitions before gave no answer")
                continue
            try:
                found.append(self._look_at(partition, opened))
                silent = 0
            except Unrecovered as never:
                found.append(Finding(partition, ReaderState.UNRECOVERED, None, None, None, policy=never.advice))
                silent = 0
            except NetworkError as error:
                if failed is None:
                    raise
                failed[partition] = error
                silent = silent + 1 if isinstance(error, SILENT) else 0
                if silent:
                    self.note(f"No answer about the readers of {partition}: {error}")
        # The logs are read when it is known which transactions have ended: a MARKER may come until then.
        self._traces.clear()
        return [one if one.policy else self._traced(one) for one in found if one is not None]

    def heal(self, finding: Finding, *, accept_loss: bool = False) -> bool:
        """Free a frozen partition, also from what has frozen it besides the transaction that was found.

        Returns False where something else has frozen it, too, whose rows may have been committed: it is freed from
        that only with `accept_loss`.

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
            left = self._look_at(finding.partition, {one.txn: one for one in self._open_transactions()})
            if left is None or left.state is ReaderState.WAITING:
                return True
            if left.txn != finding.txn and not accept_loss:
                self._traces.clear()
                if self._traced(left).loses_rows:
                    return False
            finding = left
            if not patience.pause():
                raise Unanswered(
                    f"{finding.partition} is still frozen by transaction {finding.txn} after {self.patience_s:g} s. "
                    f"{self._held_back(finding.txn)}{''.join(f'. {refused}' for refused in refusals if refused)}"
                )

    def _open_transactions(self) -> list[OpenTransaction]:
        """Ask for all of the cluster. No broker tells of any where one of their topics cannot be recovered."""
        try:
            return self.admin.open_transactions()
        except Refused as refused:
            if topic := topic_not_loaded(refused):
                self._check_recovery(topic, refused.code)
            raise

    def _look_at(self, partition: str, opened: dict[TxnId, OpenTransaction]) -> Finding | None:
        try:
            buffer = self._buffer(partition)
            if not buffer.held_up:
                return None
            txn, not_told = self._holder(partition, buffer.readable_to)
        except TopicMissing:
            self._check_recovery(partition, "not loaded")
            return None
        if txn is None:  # the look has taken a while: what is open may have changed
            known, open_here = None, any(partition in one.partitions for one in self._open_transactions())
        else:  # opened, or ended, while we looked
            known, open_here = opened.get(txn) or self.admin.transaction(txn), False
        waits = known is not None or open_here
        if not waits and self._freed(partition):
            return None
        state = ReaderState.WAITING if waits else ReaderState.FROZEN
        age_s = None if known is None else max(0.0, time.time() - known.opened_ms / 1000)
        return Finding(partition, state, txn, known, None, age_s, not_told=not_told)

    def _buffer(self, partition: str) -> Buffer:
        """Return what the broker knows of the transactions on a partition.

        Raises Refused while it recovers them, and Unrecovered where it never will.
        """
        buffer = self.admin.buffer(partition)
        if not buffer.known:
            self._check_recovery(partition, buffer.state)
            raise Refused(f"{_LOOK_AT} {partition}", buffer.state, _RECOVERING)
        return buffer

    def _check_recovery(self, partition: str, state: str) -> None:
        """Raise Unrecovered where a policy keeps brokers from recovering a partition that none of them has ready."""
        namespace = namespace_of(partition)
        if namespace not in self._policies:
            self._policies[namespace] = None
            with suppress(Refused):  # who may not ask for policies is told that the recovery may go on
                self._policies[namespace] = unreadable_snapshots(self.admin, namespace)
        if policy := self._policies[namespace]:
            raise Unrecovered(f"{_LOOK_AT} {partition}", state, "", policy)

    def _traced(self, finding: Finding) -> Finding:
        """Return a finding with what control logs say of its transaction."""
        own, trace, unread = namespace_of(finding.partition), None, list[str]()
        for namespace in dict.fromkeys((own, *self.log_namespaces)):
            traces = self._traces_of(namespace)
            here = None if finding.txn is None else traces.found.get(finding.txn)
            if here is not None and here.committed is not None:
                return replace(finding, trace=here)
            trace = trace or here
            unread += traces.unread if namespace == own else (f"{sink} in {namespace}" for sink in traces.unread)
        return replace(finding, trace=trace, unread=tuple(unread))

    def _holder(self, partition: str, readable_to: MessageId) -> tuple[TxnId | None, str]:
        """Return the transaction that follows what readers get, and why the broker cannot read its entry, or ""."""
        try:
            return self.admin.transaction_behind(partition, readable_to), ""
        except Refused as refused:
            return None, str(refused)

    def _freed(self, partition: str) -> bool:
        """Whether a partition that seemed frozen was only about to be freed, or is deleted meanwhile.

        An end takes a moment to arrive.
        """
        with suppress(TopicMissing):
            for _ in range(5):
                if not self._buffer(partition).held_up:
                    return True
                time.sleep(_PAUSE_S)
            return False
        return True

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
        older = [one for one in self._open_transactions() if txn is None or one.txn.most == txn.most]
        if not older:
            return "No transaction is open in its coordinator"
        named = ", ".join(f"{one.txn} on {', '.join(one.partitions) or 'no topic'}" for one in older)
        return f"These open transactions of its coordinator may hold the watermark back: {named}"

    def _traces_of(self, namespace: str) -> Traces:
        if namespace not in self._traces:
            self._traces[namespace] = read_traces(self.client, self.admin, namespace)
        return self._traces[namespace]


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
