"""What the sink counts and times, for those on call for it: since it was made, and of the batch in hand."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from eos.commit.control_log import Marker
from eos.commit.decision import Identity
from eos.errors import InvalidInput, NotCommitted, ReplayFailed
from eos.metrics.batch import FinishedBatch, Outcome
from eos.steps import Observer, Phase, Step

_COMMIT = (Step.MARKER, Step.END_SENT, Step.END_ANSWERED)
_NAMED = 3  # topics that a line names; of more it tells the number


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The sink's counters since it was made.

    Attributes:
        committed, skipped: batches written and committed; batches found committed already.
        attempts: transactions opened for batches; more than `committed` means tries that were aborted.
        rows, bytes: committed, over all topics. Bytes are payload before compression.
        rows_by_topic, bytes_by_topic: the same, by topic.
        step_s: seconds of the latest pass through each step on the driver, by the step's name.
        open_transaction_s: age of the transaction in hand in seconds; None when none is open.
            Readers of the partitions it wrote wait behind it.
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
    marker: Marker | None = None
    wrote: bool = False
    frames: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    delivery_s: float = 0.0
    step_s: dict[str, float] = field(default_factory=dict)

    def outcome(self, error: BaseException | None) -> Outcome:
        """Return what is known of the batch, whose call has ended with this error."""
        if self.wrote:
            return "committed"
        if error is None:
            return "replayed"
        # Without an identity nothing was begun.
        known = self.identity is None or isinstance(error, (InvalidInput, NotCommitted, ReplayFailed))
        return "failed" if known else "unknown"


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

    def timing(self, observer: Observer) -> Observer:
        """Return an observer that times each step on its way to `observer`."""

        def observe(step: Step, phase: Phase, batch_id: int | None) -> None:
            self.see(step, phase)
            observer(step, phase, batch_id)

        return observe

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
                self._attempts += 1
                self._batch.attempts += 1
                self._open_since = now

    def transaction_ended(self) -> None:
        """Note that no transaction is open any more."""
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

    def committed(self, marker: Marker, frames: Mapping[str, int]) -> None:
        """Count a batch that this call has written. Args: what the log has of it; its frames by topic."""
        with self._lock:
            self._committed += 1
            self._rows.update(marker.rows)
            self._bytes.update(marker.bytes)
            self._batch.marker, self._batch.frames, self._batch.wrote = marker, dict(frames), True

    def story(self, marker: Marker) -> str:
        """Tell of the batch that has just been committed, in one line."""
        with self._lock:
            began = self._began.get(Step.OPEN, time.monotonic())
            end_s = sum(self._step_s.get(step.value, 0.0) for step in _COMMIT)
        rows, size = sum(marker.rows.values()), sum(marker.bytes.values())
        names = sorted(topic.rpartition("/")[2] for topic in marker.rows)
        topics = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} topics"
        return (
            f"batch {marker.batch_id}: committed {rows:,} rows, {size:,} bytes{' to ' if names else ''}{topics} in "
            f"{time.monotonic() - began:.3f} s, {end_s:.3f} s of it for the commit; transaction {marker.txn}, "
            f"attempt {marker.attempt}"
        )

    def skipped(self, newest: Marker | None = None) -> None:
        """Count a batch of which nothing was to be written. Args: the newest that the log has, if it was asked."""
        with self._lock:
            self._skipped += 1
            if newest is not None and newest.batch_id == self._batch.batch_id:
                self._batch.marker = newest

    def finished(self, error: BaseException | None) -> FinishedBatch:
        """Return the record of the batch in hand, whose call has ended with this error."""
        with self._lock:
            batch, now = self._batch, time.monotonic()
            marker, whose = batch.marker, batch.identity
            wrote = marker if batch.wrote else None
            return FinishedBatch(
                sink=self.name,
                job=self.job,
                batch_id=batch.batch_id,
                query_id=None if whose is None else whose.query_id,
                run_id=None if whose is None else whose.run_id,
                outcome=batch.outcome(error),
                error=None if error is None else type(error).__name__,
                transaction=None if marker is None else str(marker.txn),
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
                self._committed,
                self._skipped,
                self._attempts,
                self._rows.total(),
                self._bytes.total(),
                dict(self._rows),
                dict(self._bytes),
                dict(self._step_s),
                age,
            )
