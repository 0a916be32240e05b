"""A driver's hold on a sink: what it knows of each batch, and the transaction that it has in hand.

The log is `eos.commit.owned_log`, how it is taken over `eos.commit.takeover`, and how a transaction is ended
`eos.commit.transaction`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from eos.commit import decision
from eos.commit.control_log import LogView, deleted
from eos.commit.decision import Action, Identity, Past
from eos.commit.owned_log import OwnedLog
from eos.commit.ports import ClientPort, CoordinatorPort
from eos.commit.registration import Registration, fits
from eos.commit.retry import GaveUp, OwnerSettings, Waits
from eos.commit.takeover import Takeover, owed
from eos.commit.transaction import EndAnswer, TransactionEnd, ask, end
from eos.errors import (
    INTERRUPTS,
    CommitUnknown,
    EosError,
    InvalidInput,
    LimitReached,
    NetworkError,
    NotCommitted,
    Refused,
    Stopped,
    TopicMissing,
)
from eos.pulsar.wire.txn import TxnId
from eos.side_by_side import side_by_side
from eos.steps import Observer, unobserved

log = logging.getLogger("eos.commit.owner")

Both = Callable[[Callable[[], Any], Callable[[], Any]], tuple[Any, Any]]
"""Does two things, and returns what they return, as `side_by_side` does."""


_NOT_KNOWN: Final = "Whether the batch is committed is not known"


@dataclass(slots=True)
class InHand:
    """The transaction of the batch being written.

    Attributes:
        txn: its id.
        commit_sent: END_TXN(commit) may have been sent: from then on it is never aborted by us.
    """

    txn: TxnId
    commit_sent: bool = False


class Owner:
    """A driver's hold on a sink. Not thread-safe: one micro-batch at a time.

    Args:
        client: the cluster.
        name: the sink's name.
        topic: its control topic, see `eos.commit.control_topic`.
        settings: waits and retention.
        observer: called before and after each step.
        stopped: says whether the query was stopped; waits end soon after.
        holders: says in words whose open transactions of a coordinator hold a topic, or None.
        sleep, clock: seconds; replaced by tests.
        at_once: does two things at the same time; replaced by tests.

    Attributes:
        log: the control log.
        in_hand: the transaction that is not known to have ended; None when there is none.
    """

    def __init__(
        self,
        client: ClientPort,
        name: str,
        topic: str,
        settings: OwnerSettings | None = None,
        *,
        observer: Observer = unobserved,
        stopped: Callable[[], bool] = lambda: False,
        holders: Callable[[int, str], str | None] = lambda coordinator, topic: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        at_once: Both = side_by_side,
    ) -> None:
        self.client, self.name, self.topic = client, name, topic
        self.observer, self.at_once = observer, at_once
        self.waits = Waits(settings or OwnerSettings(), sleep, clock, stopped)
        self.log = OwnedLog(client, topic, self.waits.settings)
        self.in_hand: InHand | None = None
        self._takeover = Takeover(client, self.log, name, self.waits, observer)
        self._holders = holders
        self._rolls_forward_from: int | None = None
        self._jumped: tuple[int, int] | None = None
        self._unlogged: int | None = None

    # ---- owning

    def make_log(self, registered: Registration | None = None) -> None:
        """Make the control topic if it is missing.

        Raises InvalidInput when it has partitions, TopicMissing when the broker does not make it, and DamagedLog where
        the checkpoint has seen records in it; CommitUnknown when it can't be made in time; Stopped.
        """
        try:
            self.insist(lambda: self.client.ensure_topic(self.topic), "the control topic")
        except TopicMissing as why:
            if registered is not None and registered.last_number:
                raise deleted(self.topic) from why
            raise

    def insist(self, action: Callable[[], None], what: str) -> None:
        """Do what the takeover needs, again and again until it works; `what` says in words what it waits for.

        Raises InvalidInput where waiting does not help, CommitUnknown when it does not work in time; Stopped.
        """
        with self._telling_what_is_known():
            self.waits.insist(action, what)

    def take_over(
        self,
        query_id: str,
        run_id: str,
        registered: Registration | None = None,
        principal: str | None = None,
        unlogged: int | None = None,
    ) -> None:
        """Make this driver the sink's only owner, and read what it has committed.

        Args:
            query_id, run_id, principal: as in `Identity`.
            registered: what the checkpoint remembers of the log.
            unlogged: the newest batch that the query has begun without the log; None: there is none.

        Raises IdentityMismatch, InvalidInput or DamagedLog before another driver was fenced, wherever the
        log can already tell; CommitUnknown when the log doesn't become readable in time; Stopped.
        """
        self.log.refuse_if_fenced()
        fits(registered, self.name, self.topic)
        self._rolls_forward_from = None if registered is None else registered.rolls_forward_from
        self._jumped = None if registered is None else registered.jumped
        self._unlogged = unlogged
        self.in_hand = None
        try:
            with self._telling_what_is_known():
                self._takeover.run(Identity(query_id, run_id, "", principal), registered)
        except (Exception, *INTERRUPTS):
            self.close()
            raise

    @property
    def registration(self) -> Registration:
        """The note for the query's checkpoint. Write it before the first batch."""
        last = self.view.last_number
        return Registration(self.name, self.topic, last, self._rolls_forward_from, jumped=self._jumped)

    @property
    def view(self) -> LogView:
        """The content of the log."""
        return self.log.view

    def close(self) -> None:
        """Close what is open. The ownership stays until another driver takes over."""
        self.log.close()

    # ---- what becomes of a batch

    def decide(self, batch_id: int, identity: Identity) -> Action:
        """Ask the log what to do with a batch, settling first what is not known of the one before.

        Raises StaleBatch, IdentityMismatch, InvalidInput or DamagedLog, see `eos.commit.decision.DECISION`; Fenced,
        CommitUnknown, NotCommitted, Stopped, see `settle`.
        """
        if self.unsettled:
            self.settle()
        retained = self.retained(batch_id)
        return decision.decide(self.view.known, batch_id, identity, retained, self._jumped, self._unlogged)

    def retained(self, batch_id: int) -> Past | None:
        """The MARKER of a batch, if it is retained and the checkpoint is being rolled forward from there."""
        since = self._rolls_forward_from
        return None if since is None or batch_id < since else self.view.markers.get(batch_id)

    @property
    def unsettled(self) -> bool:
        """True while `settle` is due: a transaction is not known to have ended, or the log was lost."""
        return self.in_hand is not None or self.log.lost

    def settle(self) -> None:
        """End the transaction in hand, own the log again, and read what it says.

        After it, `view` tells whether the batch in hand was committed. One whose commit was never asked for is not,
        though its transaction does not end, as when a topic of it was terminated. Raises Fenced when another driver
        owns the sink, CommitUnknown or NotCommitted when something did not end in time. DamagedLog or NewerVersion for
        a log that can't tell any longer, and InvalidInput for what must be changed first: both only while no commit was
        asked for. Then it is CommitUnknown.
        """
        self.log.refuse_if_fenced()
        hand = self.in_hand
        with self._telling_what_is_known():
            ended, error = None, None
            if hand is not None:
                ending, error = self._end(hand.txn, hand.commit_sent)
                ended = None if ending is TransactionEnd.NOT_YET else hand.txn
                if ended is None and hand.commit_sent:
                    raise GaveUp(f"the end of transaction {hand.txn}") from error
            try:
                self._takeover.again(ended)
            except InvalidInput as why:
                if hand is None or not hand.commit_sent:
                    raise
                raise CommitUnknown(f'sink "{self.name}": {why}. {_NOT_KNOWN}') from why
        if hand is not None and ended is None:  # its MARKER is not in sight, though our OWNER is
            log.warning("%s", owed(self.name, hand.txn, error))
        self.in_hand = None

    # ---- the transaction in hand

    def coordinator(self) -> CoordinatorPort:
        """Connect to the sink's coordinator."""
        return self.client.coordinator(self._takeover.coordinator)

    def open(self) -> TxnId:
        """Open the transaction of a batch: it is in hand until it has ended.

        Raises InvalidInput where the coordinator gives a number again.
        """
        txn = self.coordinator().new_transaction(round(self.waits.settings.ttl_s * 1000))
        self.in_hand = InHand(txn)
        self._refuse_a_number_given_before(txn)
        return txn

    def _refuse_a_number_given_before(self, txn: TxnId) -> None:
        """Refuse a transaction that would not be told from an aborted one: its rows would be hidden once committed.

        A coordinator counts up for ever, so only one that has lost its log gives a number that is not a new one.
        """
        last = self.view.intent
        if last is None or last.txn.coordinator != txn.coordinator or last.txn < txn:
            return
        raise InvalidInput(
            f"transaction coordinator {txn.coordinator} gave transaction {txn}, and {last.txn} was opened there"
            " before. It counts from the beginning again, so its log was lost or deleted"
            f" (persistent://pulsar/system/__transaction_log_{txn.coordinator}). Topics remember aborted transactions"
            " by number, and would hide the rows of a new one with the same number. Nothing of the batch is written."
            f" Open transactions at this coordinator with any client, and abort them, until it has passed {last.txn}."
            " Then start the query again. A new name of the sink does not help"
        )

    def commit(self, sent: Callable[[], None]) -> EndAnswer:
        """Ask once for the commit of the transaction in hand; `settle` is due unless it answers COMMITTED."""
        hand = self.in_hand
        assert hand is not None, "no transaction was opened"
        hand.commit_sent = True
        answer = ask(self.client, hand.txn, True, sent)
        if answer.ending is TransactionEnd.COMMITTED:
            self.in_hand = None
        return answer

    def abort(self) -> None:
        """Abort the transaction in hand, where there is one; `settle` is due if it has not ended in time."""
        if self.in_hand is not None and self._end(self.in_hand.txn, commit=False).ending is not TransactionEnd.NOT_YET:
            self.in_hand = None

    def free(self, topics: Collection[str]) -> None:
        """End an empty transaction on physical topics where an ended one may have left frames. Raises nothing."""
        if not topics:
            return
        try:
            self._takeover.free(topics)
        except (GaveUp, NetworkError, InvalidInput) as why:
            log.warning(
                'sink "%s": a try was aborted, and readers of %s may wait behind its rows until a later batch is '
                "written there, or until `eos doctor --heal` is called: %s",
                *(self.name, ", ".join(sorted(topics)), why),
            )

    def _end(self, txn: TxnId, commit: bool) -> EndAnswer:
        return end(self.client, txn, commit, self.waits.patience(self.waits.settings.stop_patience_s))

    @contextmanager
    def _telling_what_is_known(self) -> Iterator[None]:
        try:
            yield
        except GaveUp as why:
            known = self._known_after(why)
            raise known from (None if known is why.__cause__ else why.__cause__)

    def _held(self) -> str | None:
        """Say whose transactions hold the log, as far as that is told: no failure of it hides what is known."""
        try:
            return self._holders(self._takeover.coordinator, self.topic)
        except Exception as why:
            log.info('sink "%s": asking who holds %s: %s', self.name, self.topic, why)
            return None

    def _known_after(self, gave_up: GaveUp) -> EosError:
        held = self._held()
        why = gave_up.__cause__
        words = f'sink "{self.name}": waited for {gave_up} on {self.topic}, and gave up'
        if why is not None:
            words += f". The last problem was: {why}"
        if held is not None:
            words += f"; {held}"
        hand = self.in_hand
        if hand is not None and hand.commit_sent:
            return CommitUnknown(f"{words}. {_NOT_KNOWN}")
        if self.waits.stopped():
            return Stopped(f"{words}, because the query was stopped")
        if isinstance(why, LimitReached):
            return why.for_good(self.waits.settings.limit_s)
        if isinstance(why, InvalidInput):
            return why
        if hand is None:
            helps = ", and helps once that has changed" if isinstance(why, Refused) and why.advice else ""
            return CommitUnknown(
                f"{words}. It is unknown which batches earlier drivers committed; starting again is safe{helps}"
            )
        return NotCommitted(words)
