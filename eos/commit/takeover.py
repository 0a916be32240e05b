"""Taking a sink over from an earlier driver, and making its control log readable.

Once for each run of the query:

1. Read the log, and compare the query before another driver is fenced.
2. Open the control topic's producer with fencing: an earlier driver can no longer write to the log. The broker does not
    tell it, and fencing doesn't stop its END_TXN.
3. Write OWNER, and trust the log only once that record can be read. A topic is readable up to the first record of an
   open transaction. Everything after it is hidden, committed markers too. So our own OWNER in sight proves that every
   MARKER before it is either readable or gone for good.
4. Abort the transaction of the last INTENT if it left no MARKER. Where it doesn't end in time, as when a topic of it
   was terminated, it is not committed all the same, and the takeover goes on.

A crash between any two of them leaves a log that the next run takes over in the same way: docs/protocol.md tells
why for each step.

While OWNER is hidden: abort the transaction of the last INTENT in sight; if that isn't it, an
abandoned transaction holds the topic, one that the coordinator has forgotten. It is freed when a later transaction
of the same coordinator ends on the topic: its end carries the low watermark, below which the broker
aborts what it finds (TopicTransactionBuffer.handleLowWaterMark). An empty transaction is enough, once
no older one is open in that coordinator.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from typing import Final

from eos.commit.control_log import LogView, OwnerRecord, deleted
from eos.commit.decision import Identity, check_ownership
from eos.commit.owned_log import OwnedLog
from eos.commit.ports import ClientPort
from eos.commit.registration import Registration
from eos.commit.retry import GaveUp, Retry, Waits
from eos.commit.transaction import TransactionEnd, ask, end, open_transaction
from eos.errors import DamagedLog, NetworkError, TopicMissing
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from eos.steps import Observer, Step

log = logging.getLogger("eos.commit.takeover")

# Written in a transaction that is aborted, so it can never be read.
_PRIMING: Final = b'{"kind":"priming"}'

_DOUBTS = 3
"""How often a log that looks damaged is read again: a topic that was just loaded may show less than it holds."""


def bound_coordinator(name: str, coordinators: int) -> int:
    """Choose the coordinator of a sink at its first use: the SHA-256 of its name, modulo their number."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % coordinators


def owed(name: str, txn: TxnId, why: BaseException | None) -> str:
    """Say that a transaction which can no longer be committed has not ended."""
    return (
        f'sink "{name}": transaction {txn} is not committed, and has not ended in time ({why}). The sink goes on. '
        "Readers of the topics that the transaction has may wait until it ends: by itself once its time-out has "
        "passed, or, where one of its topics was terminated, once that topic is deleted"
    )


class Takeover:
    """The takeover of one log by one driver. After a wait in vain it raises `GaveUp`.

    Attributes:
        coordinator: index of the transaction coordinator that the sink always uses.
    """

    def __init__(self, client: ClientPort, log: OwnedLog, name: str, waits: Waits, observer: Observer) -> None:
        self.coordinator = 0
        self._client, self._log, self._name, self._waits, self._observer = client, log, name, waits, observer
        self._who = Identity("", "", "")
        self._begins = False
        self._ended: set[TxnId] = set()

    def run(self, who: Identity, registered: Registration | None) -> None:
        """Take the four steps.

        Raises IdentityMismatch, InvalidInput or DamagedLog before another driver is fenced, wherever the log can
        already tell.
        """
        self._who = who
        waits, control = self._waits, self._log
        seen = self._look(registered)
        check_ownership(seen.known, who)
        self.coordinator = waits.insist(lambda: self._bound(seen), "the number of transaction coordinators")
        self._begins = seen.empty
        control.count_from(seen.last_number)
        self._observer(Step.TAKEOVER, "before", None)
        waits.insist(control.fence, "the control topic's producer")
        self._observer(Step.TAKEOVER, "after", None)
        if seen.empty:
            waits.insist(self._prime, "the first transaction on the control topic")
        self._announce(seen)
        if (bound := self._bound(control.view)) != self.coordinator:
            self.coordinator = bound
            self._announce(control.view)
        check_ownership(control.view.known, who)
        self._end_last_intent()

    def again(self, ended: TxnId | None) -> None:
        """Own the log again after something was not known; `ended` is the transaction that was in hand."""
        if ended is not None:
            self._ended.add(ended)
        self._announce(self._log.begin_again())

    def _announce(self, view: LogView) -> None:
        """Write OWNER, and read on until it is readable: then the log is trusted.

        A record that was readable once stays so, and in its order. So a log that shows more later is read on, not from
        its start.
        """
        self._observer(Step.OWNER, "before", None)
        patience = self._waits.patience()
        record: OwnerRecord | None = None
        while True:
            problem: NetworkError | None = None
            try:
                if self._log.lost:
                    self._log.reopen()
                    record = None
                if record is None:
                    record = self._owner_record(view.expired)
                    self._log.append(record)
                self._log.read_on(view, record)
                if self._trusted(view, record):
                    break
                self._free(view)
            except TopicMissing as why:
                raise deleted(self._log.topic) from why
            except NetworkError as why:
                log.info("%s: taking over: %s", self._name, why)
                problem = why
            if not patience.pause(problem):
                raise GaveUp("our own OWNER record in the control log") from problem
        view.check_whole(None)
        self._log.trust(view)
        self._begins = False
        self._observer(Step.OWNER, "after", None)

    def _look(self, registered: Registration | None) -> LogView:
        """Read all that is readable now, and refuse a damaged log before touching it."""
        patience = self._waits.patience()
        doubts = 0
        while True:
            try:
                self._log.hold()
                view = self._log.read()
                view.check_whole(registered)
                self._log.warn_of_expiry(view)
                return view
            except DamagedLog:
                doubts += 1
                if doubts > _DOUBTS or not patience.pause():
                    raise
            except NetworkError as why:
                if not patience.pause(why):
                    raise GaveUp("the control log to be readable to its end") from why

    def _bound(self, seen: LogView) -> int:
        if seen.coordinator is not None:
            return seen.coordinator
        return bound_coordinator(self._name, self._client.coordinators())

    def _prime(self) -> None:
        """End one transaction with a record on the topic.

        Until then the topic forgets aborts, so that a late record of an aborted transaction would hide all that follows
        it (TopicTransactionBuffer.abortTxn does nothing without a snapshot).
        """
        if self._log.lost:
            self._log.reopen()
        self._housekeep([self._log.topic], _PRIMING, commit=False)

    def _owner_record(self, expired: MessageId | None) -> OwnerRecord:
        who = self._who
        return OwnerRecord(
            number=self._log.next_number(),
            query_id=who.query_id,
            run_id=who.run_id,
            coordinator=self.coordinator,
            topic_epoch=self._log.epoch,
            begins=self._begins,
            expired=expired,
            cluster=self._log.cluster,
        )

    def _trusted(self, view: LogView, record: OwnerRecord) -> bool:
        return view.owner == record

    def _end_last_intent(self) -> None:
        intent = self._log.view.unfinished
        if intent is None or intent.txn in self._ended:
            return
        try:
            self._end(intent.txn, commit=False)
        except GaveUp as why:
            # Our OWNER is in sight, and its MARKER is not: nobody can write that, or commit. Only the end is owed.
            log.warning("%s", owed(self._name, intent.txn, why.__cause__))
        # The second OWNER of this takeover. The first one in sight proves the log already. With the second, what is
        # decided next rests on a log that was read to its end after that transaction had ended.
        self._announce(self._log.view)

    # ---- while the log is hidden

    def _free(self, hidden: LogView) -> None:
        """Do the next thing that may make the log readable."""
        intent = hidden.unfinished
        if intent is not None and intent.txn not in self._ended:
            if ask(self._client, intent.txn, commit=False).ending is not TransactionEnd.NOT_YET:
                self._ended.add(intent.txn)
            return
        self.free([self._log.topic])

    def free(self, topics: Collection[str]) -> None:
        """End an empty transaction of the sink's coordinator on topics; raises what its requests raise, and GaveUp."""
        self._housekeep(topics, None, commit=True)

    def _housekeep(self, topics: Collection[str], record: bytes | None, commit: bool) -> None:
        """Open a transaction of the sink's coordinator on topics, put a record for the control topic in it, end it."""
        ttl_s = self._waits.settings.housekeeping_ttl_s
        with open_transaction(self._client, self.coordinator, topics, ttl_s, self._patience) as txn:
            if record is not None:
                self._log.send(record, txn)
        self._end(txn, commit)

    def _end(self, txn: TxnId, commit: bool) -> None:
        """End a transaction. Raises GaveUp where it has not ended in time, with the last answer as the cause."""
        answer = end(self._client, txn, commit, self._patience())
        if answer.ending is TransactionEnd.NOT_YET:
            raise GaveUp(f"the end of transaction {txn}") from answer.error

    def _patience(self) -> Retry:
        return self._waits.patience(self._waits.settings.stop_patience_s)
