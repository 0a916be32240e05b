"""The one interface to a sink's figures: a record of each finished micro-batch, and who is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

Outcome = Literal["committed", "replayed", "failed", "unknown"]
"""What is known of a batch when the call that wrote it ends.

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
        batch_id: Spark's number of the batch; 0 for a job.
        query_id, run_id: of Spark, or of the identity that `sink.batch` was given. None where the call failed before
            that was known.
        outcome: see `Outcome`.
        error: the name of the class of the error that the call has raised, such as "NotCommitted"; None without one.
        transaction: the Pulsar transaction that wrote the batch, as "(coordinator,number)". None where nothing is
            committed, where the sink writes without transactions, and of a batch older than the newest in the log.
        attempts: transactions that this call has opened for the batch, or its tries without one; 0 for a replay.
        rows, bytes, frames: by topic, what this call has committed; empty for any other outcome. Bytes are of values,
            keys and properties, before compression; a frame goes to the broker in one piece, with many rows in it.
        duration_s: seconds from the beginning of the call, or of the block of `sink.batch`, to its end.
        delivery_s: seconds of them in which the rows were computed, sent and acknowledged, over all attempts.
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
    """Told of each finished batch, once its outcome is known. `eos.metrics.observers` says what becomes of its errors.

    Any function of one argument is one.
    """

    def __call__(self, batch: FinishedBatch, /) -> object:
        """Take note. It is called in a thread of its own; the next batch waits for it, some seconds at most."""
        ...


Observers = BatchObserver | Sequence[BatchObserver]
"""One of them, or several."""


class LiveSink(Protocol):
    """A sink as it is now, or a job of `eos.write`. It may be asked from any thread, and must be held weakly."""

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
    """What an observer may be besides: one that is shown each sink when it is made, to ask it at any time."""

    def watch(self, sink: LiveSink) -> object:
        """Take note of a sink. Hold it weakly: it goes with its `eos.Sink`."""
        ...
