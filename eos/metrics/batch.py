"""The interface to a sink's figures: a record of each finished micro-batch, and the observers that get it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

Outcome = Literal["committed", "replayed", "failed", "unknown"]
"""The outcome of a batch, as it is known when the call that wrote it ends.

    committed  this call has written it; without a transaction: each row has its receipt
    replayed   nothing was to be written: it had been committed before, or the checkpoint is a shadow
    failed     the call has raised, and nothing that it wrote is visible
    unknown    the call has raised, and may have committed the batch: the control log decides at the next start.
               Without a transaction: rows of it may be visible, and it is written again at the next start
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedBatch:
    """One micro-batch of a sink, or one job of `eos.write`, after its outcome is known.

    Attributes:
        sink: the sink's name, or the job's id.
        job: True for a job of `eos.write`.
        batch_id: Spark's number of the batch, or 0 for a job.
        query_id, run_id: Spark's, or those of the identity that `sink.batch` was given. None where the call failed
            before it knew them.
        outcome: see `Outcome`.
        error: the class name of the error that the call raised, such as "NotCommitted". None without an error.
        transaction: the Pulsar transaction that wrote the batch, as "(coordinator,number)". None where nothing is
            committed, where the sink writes without transactions, and for a batch older than the newest in the log.
        attempts: transactions that this call opened for the batch, or its tries without one. 0 for a replay.
        rows, bytes, frames: committed by this call, by topic. Empty for any other outcome. Bytes are those of values,
            keys and properties before compression. A frame goes to the broker in one piece, with many rows in it.
        duration_s: seconds from the start of the call, or of the block of `sink.batch`, to its end.
        delivery_s: the part of `duration_s` in which rows were computed, sent and acknowledged, over all attempts.
        step_s: seconds in each step of the driver (`eos.steps`) by its name, over all attempts. Some run side by side.
    """

    sink: str
    job: bool
    batch_id: int
    query_id: str | None
    run_id: str | None
    outcome: Outcome
    error: str | None
    transaction: str | None
    attempts: int
    rows: Mapping[str, int]
    bytes: Mapping[str, int]
    frames: Mapping[str, int]
    duration_s: float
    delivery_s: float
    step_s: Mapping[str, float]


class BatchObserver(Protocol):
    """Gets each finished batch, once its outcome is known. `eos.metrics.observers` says what happens to its errors.

    Any function of one argument is an observer.
    """

    def __call__(self, batch: FinishedBatch, /) -> object:
        """Take note. The call runs in a thread of its own. The next batch waits for it, some seconds at most."""
        ...


Observers = BatchObserver | Sequence[BatchObserver]
"""One observer, or several."""


class LiveSink(Protocol):
    """A sink as it is now, or a job of `eos.write`. Any thread may ask it. Hold it by a weak reference only."""

    @property
    def name(self) -> str:
        """The sink's name, or the job's id."""
        ...

    @property
    def job(self) -> bool:
        """True for a job of `eos.write`."""
        ...

    def open_transaction_s(self) -> float | None:
        """Age of the transaction in hand in seconds, None when none is open.

        Readers of the partitions that it wrote wait behind it.
        """
        ...


@runtime_checkable
class SinkWatcher(Protocol):
    """An observer that also gets each sink when it is made, and can ask it at any time."""

    def watch(self, sink: LiveSink) -> object:
        """Take note of a sink. Hold it by a weak reference, since it ends with its `eos.Sink`."""
        ...
