"""One micro-batch as one transaction.

    NEW_TXN -> INTENT -> ADD_PARTITION(control) -> write(txn) -> MARKER, and whatever `write` left to await
    -> END_TXN(commit)

The control topic is added early, so that this round trip is over while Spark still works on the
rows: all that the protocol asks is that it comes before the MARKER. The MARKER goes out while the
last receipts and confirmations are on their way: it can't be read before the commit, and the
commit is asked for only when all of them are here.

Why a crash at any point is safe is told step by step in docs/protocol.md.

Until END_TXN(commit) is about to be sent, a failure means that the batch is not committed: its
transaction is aborted, until it has ended. From then on only the control log knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eos.commit import decision as commit
from eos.commit.control_log import Intent, Marker
from eos.commit.decision import Action, Ending, Identity, ending
from eos.commit.owner import InHand, Owner
from eos.commit.ports import CoordinatorPort
from eos.errors import InvalidInput, NetworkError, NotCommitted, Stopped
from eos.pulsar.wire.txn import TxnId
from eos.side_by_side import side_by_side
from eos.steps import Phase, Step

__all__ = ["Action", "Identity", "Write", "Written", "attempt", "decide"]


@dataclass(frozen=True, slots=True)
class Written:
    """What a batch wrote, by topic.

    Attributes:
        rows: number of messages.
        bytes: their sizes, uncompressed.
        finish: awaits what `write` did not: when it returns, each row has its receipt, is proven to
            have been written once, and nothing can send into the transaction any more. It raises if
            that is not so. None: there is nothing to await.
    """

    rows: Mapping[str, int]
    bytes: Mapping[str, int]
    finish: Callable[[], None] | None = None


Write = Callable[[TxnId, CoordinatorPort], Written]
"""Writes the batch's data into a transaction: adds partitions, sends, and gives its producers back. What it
has not awaited when it returns, `Written.finish` awaits."""


def decide(owner: Owner, batch_id: int, identity: Identity) -> Action:
    """Ask the log what to do with a batch.

    Raises StaleBatch, IdentityMismatch, InvalidInput or DamagedLog; see `eos.commit.decision.DECISION`.
    """
    return commit.decide(owner.view.known, batch_id, identity, owner.kept(batch_id))


def attempt(
    owner: Owner,
    batch_id: int,
    identity: Identity,
    write: Write,
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Write a batch in a new transaction and commit it. Returns when the batch is committed.

    `meanwhile` is work that sends nothing, such as collecting rows; it runs while the
    transaction is being opened, and is done before `write` is called.

    Does nothing for a batch that the log shows as committed, which happens when an earlier
    attempt ended in `CommitUnknown`.

    Raises:
        NotCommitted: the batch is not visible; call again to write it anew.
        CommitUnknown: not even the log could be asked in time; call again to ask, and then to write.
        Fenced: another driver owns the sink. Whether the batch is visible is for that driver to say.
        InvalidInput, Stopped, KeyboardInterrupt: from `write`, after the transaction was aborted.
    """
    if owner.unsettled:
        owner.settle()
    if decide(owner, batch_id, identity) is Action.WRITE:
        _Attempt(owner, batch_id, identity).run(write, meanwhile)


class _Attempt:
    def __init__(self, owner: Owner, batch_id: int, identity: Identity) -> None:
        self._owner, self._batch_id, self._identity = owner, batch_id, identity
        self._started = owner.clock()

    def run(self, write: Write, meanwhile: Callable[[], None] | None) -> None:
        try:
            marker, hand = self._prepare(write, meanwhile)
        except (Exception, KeyboardInterrupt) as why:
            self._give_up(why)
            raise
        self._commit(marker, hand)

    def _at(self, step: Step, phase: Phase) -> None:
        self._owner.observer(step, phase, self._batch_id)

    def _prepare(self, write: Write, meanwhile: Callable[[], None] | None) -> tuple[Marker, InHand]:
        """Do everything up to the MARKER's receipt."""
        owner = self._owner
        coordinator = owner.coordinator()
        begun: list[tuple[InHand, Intent]] = []
        if meanwhile is None:
            begun.append(self._begin(coordinator))
        else:
            side_by_side(lambda: begun.append(self._begin(coordinator)), meanwhile)
        hand, intent = begun[0]

        written = write(hand.txn, coordinator)
        if self._out_of_time():
            if written.finish is not None:
                written.finish()
            raise NotCommitted("writing took longer than the transaction lives")

        marker = self._marker(intent, written)
        if written.finish is None:
            self._mark(marker, hand)
        else:
            side_by_side(lambda: self._mark(marker, hand), written.finish)
        return marker, hand

    def _mark(self, marker: Marker, hand: InHand) -> None:
        """Say in the log, inside the transaction, that the batch is written."""
        self._at(Step.MARKER, "before")
        hand.marker_at = self._owner.append(marker, hand.txn)
        self._at(Step.MARKER, "after")

    def _begin(self, coordinator: CoordinatorPort) -> tuple[InHand, Intent]:
        """Open the transaction, and say so in the log before any data is written."""
        owner = self._owner
        self._at(Step.OPEN, "before")
        txn = coordinator.new_transaction(round(owner.settings.ttl_s * 1000))
        hand = owner.in_hand = InHand(txn)
        self._at(Step.OPEN, "after")

        self._at(Step.INTENT, "before")
        intent = self._intent(txn)
        owner.view.apply(intent, owner.append(intent))
        self._at(Step.INTENT, "after")

        self._at(Step.ADD_CONTROL, "before")
        coordinator.add_partitions(txn, [owner.topic])
        self._at(Step.ADD_CONTROL, "after")
        return hand, intent

    def _intent(self, txn: TxnId) -> Intent:
        owner, who = self._owner, self._identity
        last = owner.view.intent
        again = last is not None and (last.run_id, last.batch_id) == (who.run_id, self._batch_id)
        return Intent(
            owner.next_number(),
            who.query_id,
            who.run_id,
            self._batch_id,
            last.attempt + 1 if last is not None and again else 1,
            txn,
            who.principal,
        )

    def _marker(self, intent: Intent, written: Written) -> Marker:
        return Marker(
            self._owner.next_number(),
            intent.query_id,
            intent.run_id,
            intent.batch_id,
            intent.attempt,
            intent.txn,
            intent.principal,
            written.rows,
            written.bytes,
            self._identity.offsets,
        )

    def _commit(self, marker: Marker, hand: InHand) -> None:
        owner = self._owner
        self._at(Step.END_SENT, "before")
        hand.commit_sent = True
        answer: NetworkError | None = None
        try:
            owner.coordinator().end(hand.txn, True, self._sent)
        except NetworkError as why:
            answer = why
        if ending(True, answer) is Ending.COMMITTED:
            self._at(Step.END_ANSWERED, "after")
            owner.in_hand = None
            if hand.marker_at is not None:
                owner.view.apply(marker, hand.marker_at)
            owner.retain()
            return
        owner.settle()
        if decide(owner, self._batch_id, self._identity) is Action.WRITE:
            raise NotCommitted(self._words(f"the commit of transaction {hand.txn} came to nothing")) from answer

    def _sent(self) -> None:
        self._at(Step.END_SENT, "after")
        self._at(Step.END_ANSWERED, "before")

    def _give_up(self, why: BaseException) -> None:
        """Abort, until the transaction has ended. What `write` says about the input or a stop goes through."""
        owner = self._owner
        hand = owner.in_hand
        if hand is not None and owner.end(hand.txn, commit=False) is not Ending.NOT_YET:
            owner.in_hand = None
        if isinstance(why, (InvalidInput, Stopped, KeyboardInterrupt)):
            return
        if owner.lost_log:
            owner.settle()
        raise NotCommitted(self._words(f"batch {self._batch_id} was aborted: {why}")) from why

    def _out_of_time(self) -> bool:
        return self._owner.clock() - self._started > self._owner.settings.ttl_s

    def _words(self, what: str) -> str:
        if not self._out_of_time():
            return what
        took_s = self._owner.clock() - self._started
        return (
            f"{what}. The batch took {took_s:.0f} s, and its transaction lives {self._owner.settings.ttl_s:.0f} s:"
            " raise the option `transaction_timeout_s`, or make the batches smaller"
        )
