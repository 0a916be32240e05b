"""What the sink counts and times, for those on call for it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from eos.steps import Observer, Phase, Step


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The sink's counters since it was made.

    Attributes:
        committed, skipped: batches written and committed; batches found committed already.
        attempts: transactions opened for batches; more than `committed` means tries that were aborted.
        rows, bytes: committed, over all topics. Bytes are payload before compression.
        step_s: seconds of the latest pass through each step on the driver, by the step's name.
        open_transaction_s: age of the transaction in hand in seconds; None when none is open.
            Readers of the partitions it wrote wait behind it.
    """

    committed: int
    skipped: int
    attempts: int
    rows: int
    bytes: int
    step_s: dict[str, float]
    open_transaction_s: float | None


@dataclass(slots=True)
class Metrics:
    """Counts outcomes and times steps; safe to read from another thread."""

    _committed: int = 0
    _skipped: int = 0
    _attempts: int = 0
    _rows: int = 0
    _bytes: int = 0
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

    def committed(self, rows: int, size: int) -> None:
        """Count a committed batch."""
        with self._lock:
            self._committed += 1
            self._rows += rows
            self._bytes += size

    def skipped(self) -> None:
        """Count a batch that was committed already."""
        with self._lock:
            self._skipped += 1

    def snapshot(self) -> Snapshot:
        """Return the counters as they are now."""
        with self._lock:
            age = None if self._open_since is None else time.monotonic() - self._open_since
            return Snapshot(
                self._committed, self._skipped, self._attempts, self._rows, self._bytes, dict(self._step_s), age
            )
