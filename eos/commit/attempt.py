"""One micro-batch as one transaction.

    NEW_TXN -> INTENT -> ADD_PARTITION(control) -> send -> MARKER, beside finish -> END_TXN(commit)

`send` and `finish` are the delivery's, see `eos.commit.ports.DeliveryPort`; its `prepare` runs beside the opening.
The control topic is added early, so that this round trip is over while Spark still works on the
rows: all that the protocol asks is that it comes before the MARKER. The MARKER goes out while the
last receipts and confirmations are on their way: it can't be read before the commit, and the
commit is asked for only when all of them are here.

docs/protocol.md says step by step why a crash at any point is safe.

Until END_TXN(commit) is about to be sent, a failure means that the batch is not committed: its
transaction is aborted, until it has ended. From then on only the control log knows.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from eos.commit.control_log import Intent, Marker
from eos.commit.decision import Action, Identity
from eos.commit.owner import Owner
from eos.commit.ports import DeliveryPort, Written
from eos.commit.transaction import TransactionEnd
from eos.errors import INTERRUPTS, InvalidInput, NotCommitted, OutOfTurn, RefusedForGood, Stopped, TookTooLong
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from eos.steps import Phase, Step

log = logging.getLogger("eos.commit.attempt")


def attempt(owner: Owner, batch_id: int, identity: Identity, delivery: DeliveryPort) -> Action:
    """Ask the log about a batch once, and write it in a new transaction where the log says so.

    Returns WRITE when the batch was written and is committed, SKIP when it had been committed before, which may be
    by an earlier attempt that ended in `CommitUnknown`.

    Raises:
        NotCommitted: the batch is not visible. Call again to write it again. TookTooLong: with more time only.
        CommitUnknown: not even the log could be asked in time; call again to ask, and then to write.
        Fenced: another driver owns the sink. Whether the batch is visible is for that driver to say.
        StaleBatch, IdentityMismatch, DamagedLog: see `eos.commit.decision.DECISION`.
        Stopped: the query was stopped, and the log does not have the batch.
        InvalidInput, OutOfTurn, KeyboardInterrupt, SystemExit: from `delivery`, after the transaction was aborted.
    """
    action = owner.decide(batch_id, identity)
    if action is Action.WRITE:
        if owner.waits.stopped():
            raise Stopped(f"The query was stopped before batch {batch_id} was written.")
        _Attempt(owner, batch_id, identity, delivery).run()
    return action


class _Attempt:
    def __init__(self, owner: Owner, batch_id: int, identity: Identity, delivery: DeliveryPort) -> None:
        self._owner, self._batch_id, self._identity, self._delivery = owner, batch_id, identity, delivery
        self._ttl_s = owner.waits.settings.ttl_s
        self._started = owner.waits.clock()
        self._took_s = 0.0  # until it failed, or its commit was answered: what follows waits for the cluster

    def run(self) -> None:
        try:
            marker, at = self._write()
        except (Exception, *INTERRUPTS) as why:
            self._took_s = self._since_start_s()
            self._give_up(why)
            raise
        self._commit(marker, at)

    def _at(self, step: Step, phase: Phase) -> None:
        self._owner.observer(step, phase, self._batch_id)

    def _write(self) -> tuple[Marker, MessageId]:
        """Do everything up to the MARKER's receipt."""
        owner, delivery = self._owner, self._delivery
        intent, _ = owner.at_once(self._begin, delivery.prepare)
        written = delivery.send(intent.txn)
        self._took_s = self._since_start_s()
        if self._out_of_time():
            delivery.finish()
            raise self._not_committed("writing took longer than the transaction lives")
        marker = self._marker(intent, written)
        at, _ = owner.at_once(lambda: self._mark(marker), delivery.finish)
        return marker, at

    def _begin(self) -> Intent:
        """Open the transaction, and say so in the log before any data is written."""
        owner = self._owner
        self._at(Step.OPEN, "before")
        txn = owner.open()
        self._at(Step.OPEN, "after")

        self._at(Step.INTENT, "before")
        intent = self._intent(txn)
        owner.view.apply(intent, owner.log.append(intent))
        self._at(Step.INTENT, "after")

        self._at(Step.ADD_CONTROL, "before")
        owner.coordinator().add_partitions(txn, [owner.topic])
        self._at(Step.ADD_CONTROL, "after")
        return intent

    def _intent(self, txn: TxnId) -> Intent:
        owner, who = self._owner, self._identity
        last = owner.view.intent
        again = last is not None and (last.run_id, last.batch_id) == (who.run_id, self._batch_id)
        return Intent(
            number=owner.log.next_number(),
            query_id=who.query_id,
            run_id=who.run_id,
            batch_id=self._batch_id,
            attempt=last.attempt + 1 if last is not None and again else 1,
            txn=txn,
            principal=who.principal,
            expired=owner.view.expired,
        )

    def _marker(self, intent: Intent, written: Written) -> Marker:
        return Marker(
            number=self._owner.log.next_number(),
            query_id=intent.query_id,
            run_id=intent.run_id,
            batch_id=intent.batch_id,
            attempt=intent.attempt,
            txn=intent.txn,
            principal=intent.principal,
            rows=written.rows,
            bytes=written.bytes,
            offsets=self._identity.offsets,
            expired=intent.expired,
        )

    def _mark(self, marker: Marker) -> MessageId:
        """Say in the log, inside the transaction, that the batch is written."""
        self._at(Step.MARKER, "before")
        try:
            at = self._owner.log.append(marker, marker.txn)
        except RefusedForGood:
            raise
        except InvalidInput as why:
            raise InvalidInput(
                f"The MARKER of batch {marker.batch_id} can't be written to {self._owner.topic}: {why}. It names"
                f" {len(marker.rows)} topics, and holds the batch's offsets, {len(marker.offsets)} characters. The"
                " batch is aborted, and readers see none of its rows. Write a batch's rows to fewer topics, read fewer"
                " partitions in one query, or raise maxMessageSize of the brokers and nettyMaxFrameSizeBytes of the"
                " bookies"
            ) from why
        self._at(Step.MARKER, "after")
        return at

    def _commit(self, marker: Marker, at: MessageId) -> None:
        owner = self._owner
        self._at(Step.END_SENT, "before")
        answer = owner.commit(self._sent)
        self._took_s = self._since_start_s()
        if answer.ending is TransactionEnd.COMMITTED:
            self._at(Step.END_ANSWERED, "after")
            owner.view.apply(marker, at)
            owner.log.retain()
        elif owner.decide(self._batch_id, self._identity) is Action.WRITE:
            why = f"the commit of transaction {marker.txn} came to nothing: {answer.error}"
            raise self._not_committed(why) from answer.error

    def _sent(self) -> None:
        self._at(Step.END_SENT, "after")
        self._at(Step.END_ANSWERED, "before")

    def _give_up(self, why: BaseException) -> None:
        """Abort, until the transaction has ended. An error about the input, or about a mistake, passes as it is."""
        owner = self._owner
        try:
            unsealed = self._abandoned()
        except INTERRUPTS:  # once more, by an impatient user: readers wait until the transaction has ended
            owner.abort()
            raise
        owner.abort()
        owner.free(unsealed)
        if isinstance(why, (InvalidInput, OutOfTurn, *INTERRUPTS)):
            return
        if owner.log.lost:
            owner.settle()
        if not isinstance(why, TookTooLong):
            raise self._not_committed(f"batch {self._batch_id} was aborted: {why}") from why

    def _abandoned(self) -> Collection[str]:
        try:
            return self._delivery.abandon()
        except Exception as why:  # such as that the system has no thread left, or that Python is ending
            log.warning(
                "Batch %d is aborted, and its producers could not be given up before: %s. Readers of its topics may "
                "wait behind its rows. `eos doctor` lists such partitions, and `eos doctor --heal TOPIC` frees them.",
                *(self._batch_id, why),
            )
            return ()

    def _out_of_time(self) -> bool:
        return self._took_s > self._ttl_s

    def _since_start_s(self) -> float:
        return self._owner.waits.clock() - self._started

    def _not_committed(self, what: str) -> NotCommitted:
        if not self._out_of_time():
            return NotCommitted(what)
        return TookTooLong(
            f"{what}. The batch took {self._took_s:.0f} s, and its transaction lives {self._ttl_s:.0f} s."
            " Raise the option `transaction_timeout_s`, or make the batches smaller"
        )
