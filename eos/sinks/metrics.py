"""The counts and times of the sink, for those on call: since it was made, and of the batch in hand."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eos.commit.control_log import Marker
from eos.commit.decision import Identity
from eos.commit.ports import Written
from eos.errors import InvalidInput, NotCommitted, ReplayFailed
from eos.metrics.batch import FinishedBatch, Outcome
from eos.pulsar.wire.txn import TxnId
from eos.steps import COMMIT_STEPS, Observer, Phase, Step

_NAMED = 3  # topics that a line names; of more it tells the number


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The sink's counters since it was made.

    Attributes:
        committed, skipped: batches written and committed, and batches that were committed already.
        attempts: transactions opened for batches, or tries without one. Some tries failed if there are more than
            `committed`.
        rows, bytes: committed, over all topics. Bytes are payload before compression.
        rows_by_topic, bytes_by_topic: the same, by topic.
        step_s: seconds of the latest pass through each step on the driver, by the step's name.
        open_transaction_s: age of the open transaction in seconds. None when none is open. Readers of its partitions
            wait behind it.
    """

    committed: int
    skipped: int
    attempts: int
    rows: int
    bytes: int
    rows_by_topic: Mapping[str, int]
    bytes_by_topic: Mapping[str, int]
    step_s: Mapping[str, float]
    open_transaction_s: float | None


@dataclass(slots=True)
class _InHand:
    """The batch in hand, as far as it has come."""

    batch_id: int = 0
    began: float = field(default_factory=time.monotonic)
    identity: Identity | None = None
    transaction: TxnId | None = None
    wrote: Written | None = None
    shown: bool = False
    frames: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    delivery_s: float = 0.0
    step_s: dict[str, float] = field(default_factory=dict)

    def outcome(self, error: BaseException | None) -> Outcome:
        """Return what is known of the batch, whose call has ended with this error."""
        if self.wrote is not None:
            return "committed"
        if error is None:
            return "replayed"
        # Without an identity nothing was begun.
        known = self.identity is None or isinstance(error, (InvalidInput, NotCommitted, ReplayFailed))
        return "failed" if known and not self.shown else "unknown"


@dataclass(slots=True, weakref_slot=True, eq=False)
class Metrics:
    """Counts outcomes and times steps; safe to read from another thread.

    Attributes:
        name: of the sink, or the id of the job.
        job: True for a job of `eos.write`.
    """

    name: str = ""
    job: bool = False
    _committed: int = 0
    _skipped: int = 0
    _attempts: int = 0
    _rows: Counter[str] = field(default_factory=Counter)
    _bytes: Counter[str] = field(default_factory=Counter)
    _step_s: dict[str, float] = field(default_factory=dict)
    _began: dict[Step, float] = field(default_factory=dict)
    _open_since: float | None = None
    _batch: _InHand = field(default_factory=_InHand)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def see(self, step: Step, phase: Phase) -> None:
        """Note the beginning or the end of a step."""
        now = time.monotonic()
        with self._lock:
            if phase == "before":
                self._began[step] = now
                return
            took = now - self._began.get(step, now)
            self._step_s[step.value] = took
            self._batch.step_s[step.value] = self._batch.step_s.get(step.value, 0.0) + took
            if step is Step.OPEN:
                self._count_attempt()
                self._open_since = now

    def tries(self) -> None:
        """Note that a batch is about to be written without a transaction."""
        with self._lock:
            self._count_attempt()

    def sends(self) -> None:
        """Note that rows are about to be sent without a transaction. Some may be visible, whatever the result."""
        with self._lock:
            self._batch.shown = True

    def _count_attempt(self) -> None:
        self._attempts += 1
        self._batch.attempts += 1

    def transaction_ended(self) -> None:
        """Note that no transaction is open any longer."""
        with self._lock:
            self._open_since = None

    def open_transaction_s(self) -> float | None:
        """Return the age of the transaction in hand in seconds; None when none is open."""
        with self._lock:
            return None if self._open_since is None else time.monotonic() - self._open_since

    def begin(self, batch_id: int) -> None:
        """Note that a batch has come."""
        with self._lock:
            self._batch = _InHand(batch_id)

    def identified(self, identity: Identity) -> None:
        """Note whose batch it is. From here on it may be written."""
        with self._lock:
            self._batch.identity = identity

    def delivered(self, seconds: float) -> None:
        """Note how long it took to get the rows into transactions, over all attempts."""
        with self._lock:
            self._batch.delivery_s = seconds

    def committed(self, wrote: Written, frames: Mapping[str, int], transaction: TxnId | None = None) -> None:
        """Count a batch that this call has written.

        Args: what; its frames by topic; the transaction that wrote it, None where there was none.
        """
        with self._lock:
            self._committed += 1
            self._rows.update(wrote.rows)
            self._bytes.update(wrote.bytes)
            self._batch.wrote, self._batch.frames, self._batch.transaction = wrote, dict(frames), transaction

    def story(self, marker: Marker) -> str:
        """Tell of the batch that has just been committed, in one line."""
        with self._lock:
            began = self._began.get(Step.OPEN, time.monotonic())
            end_s = sum(self._step_s.get(step.value, 0.0) for step in COMMIT_STEPS)
        return (
            f"batch {marker.batch_id}: committed {_in_words(marker)} in {time.monotonic() - began:.3f} s, "
            f"{end_s:.3f} s of it for the commit; transaction {marker.txn}, attempt {marker.attempt}"
        )

    def plain_story(self) -> str:
        """Tell of the batch that has just been written without a transaction, in one line."""
        with self._lock:
            batch = self._batch
            assert batch.wrote is not None, "nothing was written"
            return (
                f"batch {batch.batch_id}: wrote {_in_words(batch.wrote)} in {time.monotonic() - batch.began:.3f} s, "
                f"without a transaction; attempt {batch.attempts}"
            )

    def skipped(self, newest: Marker | None = None) -> None:
        """Count a batch whose rows were not to be written. Args: the newest that the log has, if it was asked."""
        with self._lock:
            self._skipped += 1
            if newest is not None and newest.batch_id == self._batch.batch_id:
                self._batch.transaction = newest.txn

    def finished(self, error: BaseException | None) -> FinishedBatch:
        """Return the record of the batch in hand, whose call has ended with this error."""
        with self._lock:
            batch, now = self._batch, time.monotonic()
            wrote, whose = batch.wrote, batch.identity
            return FinishedBatch(
                sink=self.name,
                job=self.job,
                batch_id=batch.batch_id,
                query_id=None if whose is None else whose.query_id,
                run_id=None if whose is None else whose.run_id,
                outcome=batch.outcome(error),
                error=None if error is None else type(error).__name__,
                transaction=None if batch.transaction is None else str(batch.transaction),
                attempts=batch.attempts,
                rows={} if wrote is None else dict(wrote.rows),
                bytes={} if wrote is None else dict(wrote.bytes),
                frames={} if wrote is None else batch.frames,
                duration_s=now - batch.began,
                delivery_s=batch.delivery_s,
                step_s=dict(batch.step_s),
            )

    def snapshot(self) -> Snapshot:
        """Return the counters as they are now."""
        age = self.open_transaction_s()
        with self._lock:
            return Snapshot(
                committed=self._committed,
                skipped=self._skipped,
                attempts=self._attempts,
                rows=self._rows.total(),
                bytes=self._bytes.total(),
                rows_by_topic=dict(self._rows),
                bytes_by_topic=dict(self._bytes),
                step_s=dict(self._step_s),
                open_transaction_s=age,
            )


def timing(metrics: Callable[[], Metrics], observer: Observer) -> Observer:
    """Return an observer that times each step on its way to `observer`. Args: says who counts now; the observer."""

    def observe(step: Step, phase: Phase, batch_id: int | None) -> None:
        metrics().see(step, phase)
        observer(step, phase, batch_id)

    return observe


def _in_words(wrote: Written) -> str:
    names = sorted(topic.rpartition("/")[2] for topic in wrote.rows)
    topics = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} topics"
    rows, size = sum(wrote.rows.values()), sum(wrote.bytes.values())
    return f"{rows:,} rows, {size:,} bytes{' to ' if names else ''}{topics}"
