"""Owning a sink: taking it over from an earlier driver, and finding out what became of a batch.

Taking over, once for each run of the query:

1. Read the log, and compare the query before anybody is fenced.
2. Open the control topic's producer with fencing: an earlier driver can't write to the log any more.
   It isn't told, and fencing doesn't stop its END_TXN.
3. Write OWNER, and trust the log only once that record can be read. A topic is readable up to the
   first record of an open transaction; what lies behind it, committed markers too, is hidden. So our
   own OWNER in sight proves that every MARKER before it is either readable or gone for good.
4. Abort the transaction of the last INTENT if it left no MARKER.

While OWNER is hidden: abort the transaction of the last INTENT in sight; if that isn't it, an
abandoned transaction holds the topic, one that the coordinator has forgotten. It is freed when a later transaction
of the same coordinator ends on the topic: its end carries the low watermark, below which the broker
aborts what it finds (TopicTransactionBuffer.handleLowWaterMark). An empty transaction is enough, once
no older one is open in that coordinator.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from eos.commit.control_log import HOLD, LogView, OwnerRecord, Record, Registration, encode, fits
from eos.commit.decision import Ending, Identity, Past, check_ownership, ending
from eos.commit.patience import Patience, Settings
from eos.commit.ports import ClientPort, ControlProducerPort, CoordinatorPort, HoldPort
from eos.commit.reading import read_log
from eos.errors import CommitUnknown, ConnectionLost, DamagedLog, EosError, Fenced, NetworkError, NotCommitted, Stopped
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from eos.steps import Observer, Step, unobserved

__all__ = ["InHand", "Owner", "Settings", "bound_coordinator"]

log = logging.getLogger("eos.commit.owner")

T = TypeVar("T")

# Written in a transaction that is aborted, so nobody ever reads it.
_PRIMING: Final = b'{"kind":"priming"}'


@dataclass(slots=True)
class InHand:
    """The transaction of the batch being written.

    Attributes:
        txn: its id.
        commit_sent: END_TXN(commit) may have been sent: from then on it is never aborted by us.
        marker_at: where its MARKER lies, once that was acknowledged.
    """

    txn: TxnId
    commit_sent: bool = False
    marker_at: MessageId | None = None


def bound_coordinator(name: str, coordinators: int) -> int:
    """Choose the coordinator of a sink at its first use: the SHA-256 of its name, modulo their number."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % coordinators


def _never() -> bool:
    return False


def _nobody_knows(coordinator: int, topic: str) -> str | None:
    return None


class Owner:
    """A driver's hold on a sink. Not thread-safe: one micro-batch at a time.

    Args:
        client: the cluster.
        name: the sink's name.
        topic: its control topic, see `eos.commit.control_log.control_topic`.
        settings: waits and retention.
        observer: told before and after each step.
        stopped: says whether the query was stopped; waits end soon after.
        holders: says in words whose open transactions of a coordinator hold a topic, or None.
        sleep, clock: seconds; replaced by tests.
    """

    def __init__(
        self,
        client: ClientPort,
        name: str,
        topic: str,
        settings: Settings | None = None,
        *,
        observer: Observer = unobserved,
        stopped: Callable[[], bool] = _never,
        holders: Callable[[int, str], str | None] = _nobody_knows,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client, self.name, self.topic = client, name, topic
        self.settings = settings or Settings()
        self.observer, self.stopped, self.sleep, self.clock = observer, stopped, sleep, clock
        self.view = LogView()
        self.in_hand: InHand | None = None
        self._holders = holders
        self._who = Identity("", "", "")
        self._rolls_forward_from: int | None = None
        self._coordinator = 0
        self._epoch: int | None = None
        self._number = 0
        self._begins = False
        self._producer: ControlProducerPort | None = None
        self._hold: HoldPort | None = None
        self._ended: set[TxnId] = set()
        self._let_go: MessageId | None = None
        self._fenced: Fenced | None = None

    # ---- what the sink and the micro-batch use

    def take_over(
        self, query_id: str, run_id: str, registered: Registration | None = None, principal: str | None = None
    ) -> None:
        """Make this driver the sink's only owner, and read what it has committed.

        Raises IdentityMismatch, InvalidInput or DamagedLog before anybody was fenced, wherever the
        log can already tell; CommitUnknown when the log doesn't become readable in time; Stopped.
        """
        self._refuse_if_fenced()
        fits(registered, self.name, self.topic)
        self._who = Identity(query_id, run_id, "", principal)
        self._rolls_forward_from = None if registered is None else registered.rolls_forward_from
        self.in_hand = self._producer = self._epoch = None
        seen = self._look(registered)
        check_ownership(seen.known, self._who)
        self._coordinator = self._insist(lambda: self._bound(seen), "the number of transaction coordinators")
        self._number, self._begins = seen.last_number, seen.empty
        self.observer(Step.TAKEOVER, "before", None)
        self._insist(self._open, "the control topic's producer")
        self.observer(Step.TAKEOVER, "after", None)
        if seen.empty:
            self._insist(self._prime, "the first transaction on the control topic")
        self._announce()
        if (bound := self._bound(self.view)) != self._coordinator:
            self._coordinator = bound
            self._announce()
        check_ownership(self.view.known, self._who)
        self._end_last_intent()

    def settle(self) -> None:
        """End the transaction in hand, own the log again, and read what it says.

        After it, `view` tells whether the batch in hand was committed. Raises Fenced when another
        driver owns the sink, CommitUnknown or NotCommitted when something did not end in time.
        """
        self._refuse_if_fenced()
        hand = self.in_hand
        if hand is not None:
            if self.end(hand.txn, hand.commit_sent) is Ending.NOT_YET:
                raise self._gave_up(f"the end of transaction {hand.txn}")
            self._ended.add(hand.txn)
        self._announce()
        self.in_hand = None

    @property
    def unsettled(self) -> bool:
        """True while `settle` is due: a transaction is not known to have ended, or the log was lost."""
        return self.in_hand is not None or self._producer is None

    @property
    def lost_log(self) -> bool:
        """True when the control producer broke: another driver may own the sink."""
        return self._producer is None

    @property
    def registration(self) -> Registration:
        """What the query's checkpoint should remember. Write it before the first batch."""
        return Registration(self.name, self.topic, self.view.last_number, self._rolls_forward_from)

    def kept(self, batch_id: int) -> Past | None:
        """The MARKER of a batch, if it is kept and the checkpoint is being rolled forward from there; see `decide`."""
        since = self._rolls_forward_from
        return None if since is None or batch_id < since else self.view.past(batch_id)

    def keep_markers_since(self, batch_id: int | None) -> None:
        """Retain all markers from this batch on, from now on; None: the newest ones only."""
        self.settings = replace(self.settings, markers_kept_since=batch_id)
        self.view.keep_since = batch_id

    def coordinator(self) -> CoordinatorPort:
        """Connect to the sink's coordinator."""
        return self.client.coordinator(self._coordinator)

    def next_number(self) -> int:
        """Count up the running number of the log's records."""
        self._number += 1
        return self._number

    def append(self, record: Record, txn: TxnId | None = None) -> MessageId:
        """Write one record and wait for its receipt. After a failure the log is lost until `settle`."""
        return self._send(encode(record), txn)

    def end(self, txn: TxnId, commit: bool) -> Ending:
        """Ask for the end of a transaction until it has ended; NOT_YET when patience is at an end."""
        patience = self._patience(self.settings.stop_patience_s)
        while True:
            result = self._end_once(txn, commit)
            if result is not Ending.NOT_YET or not patience.pause():
                return result

    def retain(self) -> None:
        """Let the broker drop what lies before the retained markers. A failure is made good later."""
        expired = self.view.expired
        if expired is None or expired == self._let_go:
            return
        try:
            self._held().acknowledge(expired)
            self._let_go = expired
        except NetworkError as why:
            log.warning("%s: the control log could not be trimmed: %s", self.name, why)
            self._hold = None

    def close(self) -> None:
        """Close what is open. The ownership stays until another driver takes over."""
        producer, hold = self._producer, self._hold
        self._producer = self._hold = None
        for port in (producer, hold):
            if port is not None:
                try:
                    port.close()
                except (NetworkError, Fenced) as why:
                    log.info("%s: closing: %s", self.name, why)

    # ---- takeover, step by step

    def _bound(self, seen: LogView) -> int:
        if seen.coordinator is not None:
            return seen.coordinator
        return bound_coordinator(self.name, self.client.coordinators())

    def _look(self, registered: Registration | None) -> LogView:
        """Read all that is readable now, and refuse a damaged log before touching it.

        A topic that was just loaded may show less than it holds for a moment, so damage is
        believed only when it persists.
        """
        patience = self._patience()
        doubts = 0
        while True:
            try:
                self._held()
                view = self._read(None)
                view.check_whole(registered)
                return view
            except DamagedLog:
                doubts += 1
                if doubts > 3 or not patience.pause():
                    raise
            except NetworkError as why:
                self._hold = None
                if not patience.pause():
                    raise self._gave_up("the control log") from why

    def _open(self) -> None:
        try:
            producer = self.client.producer(self.topic, access="exclusive-with-fencing", topic_epoch=self._epoch)
        except Fenced as why:
            if self._epoch is not None:
                self._fenced = why
            raise
        self._producer, self._epoch = producer, producer.topic_epoch

    def _prime(self) -> None:
        """End one transaction with a record on the topic.

        Until then the topic forgets aborts, so that a late record of an aborted transaction would
        hide whatever follows it (TopicTransactionBuffer.abortTxn does nothing without a snapshot).
        """
        if self._producer is None:
            self._open()
        self._housekeep(_PRIMING, commit=False)

    def _announce(self) -> None:
        """Write OWNER and wait until it is readable: then the log is trusted."""
        self.observer(Step.OWNER, "before", None)
        patience = self._patience()
        record: OwnerRecord | None = None
        while True:
            try:
                if self._producer is None:
                    self._open()
                    record = None
                if record is None:
                    record = self._owner_record()
                    self.append(record)
                view = self._read(record)
                if self._trusted(view, record):
                    break
                self._free(view)
            except NetworkError as why:
                log.info("%s: taking over: %s", self.name, why)
            if not patience.pause():
                raise self._gave_up("our own OWNER record in the control log")
        view.check_whole(None)
        self.view, self._begins = view, False
        self._number = max(self._number, view.last_number)
        self.observer(Step.OWNER, "after", None)

    def _owner_record(self) -> OwnerRecord:
        return OwnerRecord(
            self.next_number(),
            self._who.query_id,
            self._who.run_id,
            self._coordinator,
            self._epoch or 0,
            self._begins,
        )

    def _trusted(self, view: LogView, record: OwnerRecord) -> bool:
        return view.owner == record

    def _end_last_intent(self) -> None:
        intent = self.view.unfinished
        if intent is None or intent.txn in self._ended:
            return
        if self.end(intent.txn, commit=False) is Ending.NOT_YET:
            raise self._gave_up(f"the end of transaction {intent.txn} of the driver before us")
        self._announce()

    # ---- while the log is hidden

    def _free(self, hidden: LogView) -> None:
        """Do the next thing that may make the log readable."""
        intent = hidden.unfinished
        if intent is not None and intent.txn not in self._ended:
            if self._end_once(intent.txn, commit=False) is not Ending.NOT_YET:
                self._ended.add(intent.txn)
            return
        self._housekeep(None, commit=True)

    def _housekeep(self, record: bytes | None, commit: bool) -> None:
        """Open a transaction of the sink's coordinator on the control topic, and end it."""
        coordinator = self.coordinator()
        txn = coordinator.new_transaction(round(self.settings.housekeeping_ttl_s * 1000))
        try:
            coordinator.add_partitions(txn, [self.topic])
            if record is not None:
                self._send(record, txn)
        except NetworkError:
            self.end(txn, commit=False)
            raise
        if self.end(txn, commit) is Ending.NOT_YET:
            raise self._gave_up(f"the end of transaction {txn}")

    # ---- single requests

    def _read(self, until: OwnerRecord | None) -> LogView:
        return read_log(self.client, self.topic, self.settings, until)

    def _send(self, data: bytes, txn: TxnId | None) -> MessageId:
        if self._producer is None:
            raise ConnectionLost(f"the producer of {self.topic} is not open")
        try:
            return self._producer.send_record(data, txn)
        except NetworkError:
            self._drop_producer()
            raise
        except Fenced as why:
            # Even a stranger whose reopening was refused throws us out: only the topic's epoch tells who owns it.
            self._drop_producer()
            raise ConnectionLost(f"the producer of {self.topic} was replaced: {why}") from why

    def _drop_producer(self) -> None:
        if self._producer is not None:
            self._producer.abandon()
        self._producer = None

    def _end_once(self, txn: TxnId, commit: bool) -> Ending:
        """Ask the coordinator that opened `txn`, which need not be the sink's."""
        try:
            self.client.coordinator(txn.coordinator).end(txn, commit)
        except NetworkError as why:
            return ending(commit, why)
        return ending(commit, None)

    def _held(self) -> HoldPort:
        if self._hold is None:
            self._hold = self.client.hold(self.topic, HOLD)
        return self._hold

    # ---- waiting

    def _patience(self, stopped_s: float = 0.0) -> Patience:
        return Patience(
            self.settings,
            self.settings.patience_s,
            stopped_s,
            sleep=self.sleep,
            clock=self.clock,
            stopped=self.stopped,
        )

    def _insist(self, action: Callable[[], T], what: str) -> T:
        patience = self._patience()
        while True:
            try:
                return action()
            except NetworkError as why:
                if not patience.pause():
                    raise self._gave_up(what) from why

    def _gave_up(self, waited_for: str) -> EosError:
        held = self._holders(self._coordinator, self.topic)
        words = f'sink "{self.name}": waited for {waited_for} on {self.topic}, and gave up'
        if held is not None:
            words += f"; {held}"
        hand = self.in_hand
        if hand is not None and hand.commit_sent:
            return CommitUnknown(f"{words}. Whether the batch is committed is not known")
        if self.stopped():
            return Stopped(f"{words}, because the query was stopped")
        if hand is None:
            return CommitUnknown(f"{words}. What earlier drivers committed is not known; starting again is safe")
        return NotCommitted(words)

    def _refuse_if_fenced(self) -> None:
        if self._fenced is not None:
            raise Fenced(str(self._fenced))
