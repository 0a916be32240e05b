"""What the sink counts and times, for those on call for it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from eos.commit.control_log import Marker
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
class Metrics:
    """Counts outcomes and times steps; safe to read from another thread."""

    _committed: int = 0
    _skipped: int = 0
    _attempts: int = 0
    _rows: Counter[str] = field(default_factory=Counter)
    _bytes: Counter[str] = field(default_factory=Counter)
    _step_s: dict[str, float] = field(default_factory=dict)
    _began: dict[Step, float] = field(default_factory=dict)
    _open_since: float | None = None
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
            self._step_s[step.value] = now - self._began.get(step, now)
            if step is Step.OPEN:
                self._attempts += 1
                self._open_since = now

    def transaction_ended(self) -> None:
        """Note that no transaction is open any more."""
        with self._lock:
            self._open_since = None

    def committed(self, rows: Mapping[str, int], sizes: Mapping[str, int]) -> None:
        """Count a committed batch. Args: its rows, and its bytes, by topic."""
        with self._lock:
            self._committed += 1
            self._rows.update(rows)
            self._bytes.update(sizes)

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

    def skipped(self) -> None:
        """Count a batch that was committed already."""
        with self._lock:
            self._skipped += 1

    def snapshot(self) -> Snapshot:
        """Return the counters as they are now."""
        with self._lock:
            age = None if self._open_since is None else time.monotonic() - self._open_since
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
