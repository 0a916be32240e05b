"""The figures of a sink, each named, described and labelled once: every exporter makes its own names of these.

No label has values without a bound: no batch, no transaction, no run. The topics that rows name and the ids of jobs
come from data; `Labels` keeps them few.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from eos.errors import (
    BadCertificates,
    BadCredentials,
    CommitUnknown,
    DamagedLog,
    EncryptionRequired,
    Fenced,
    IdentityMismatch,
    InvalidInput,
    NewerVersion,
    NotCommitted,
    OutOfTurn,
    RefusedForGood,
    ReplayFailed,
    StaleBatch,
    Stopped,
    TookTooLong,
    TopicMissing,
    Unacknowledged,
)
from eos.metrics.batch import FinishedBatch, LiveSink, Outcome

JOBS: Final = "eos.write"
"""The label `sink` of all jobs, whose ids would be a new value each day."""

TOPICS: Final = 200
"""Topics that have a value of their own in the label `topic`; all others are "other"."""

DELIVERY: Final = "delivery"
"""The label `step` of the time in which rows are computed, sent and acknowledged: of no single step of `eos.steps`."""

ERRORS: Final = (
    InvalidInput,
    TopicMissing,
    IdentityMismatch,
    StaleBatch,
    DamagedLog,
    NewerVersion,
    RefusedForGood,
    EncryptionRequired,
    BadCredentials,
    BadCertificates,
    NotCommitted,
    TookTooLong,
    Stopped,
    CommitUnknown,
    Unacknowledged,
    ReplayFailed,
    Fenced,
    OutOfTurn,
)
"""The errors that leave a sink: the values of the label `error` that are there from the beginning.

What a batch function itself raises is another value, which begins with its first failure.
"""

DURATION_BUCKETS_S: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: in words with dots and underscores, beginning with what it is of, without its unit.
        kind: how it adds up.
        unit: "seconds", "bytes", or what is counted, in the singular.
        labels: names of its labels, in the order of their values.
        meaning: in a sentence without the full stop.
    """

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    labels: tuple[str, ...]
    meaning: str


BATCHES: Final = Figure(
    "sink.batches",
    "counter",
    "batch",
    ("sink", "outcome"),
    "finished batches, by outcome: committed, replayed, failed, unknown",
)
FAILURES: Final = Figure(
    "sink.failures",
    "counter",
    "failure",
    ("sink", "error"),
    "calls that raised, by the error's class (Stopped for a query that was stopped in the batch)",
)
TRANSACTIONS: Final = Figure(
    "sink.transactions",
    "counter",
    "transaction",
    ("sink",),
    "transactions opened, or tries without one. Some tries failed if there are more than committed batches",
)
ROWS: Final = Figure("sink.rows", "counter", "row", ("sink", "topic"), "rows committed")
PAYLOAD: Final = Figure(
    "sink.payload",
    "counter",
    "bytes",
    ("sink", "topic"),
    "bytes of values, keys and properties committed, before compression",
)
FRAMES: Final = Figure(
    "sink.frames",
    "counter",
    "frame",
    ("sink", "topic"),
    "frames committed. A frame has many rows and is sent in one piece",
)
DURATION: Final = Figure(
    "sink.batch.duration", "histogram", "seconds", ("sink",), "time of a committed batch in the sink"
)
STEP_TIME: Final = Figure(
    "sink.step.time",
    "counter",
    "seconds",
    ("sink", "step"),
    "time in each step of the driver. Some steps run side by side. "
    f'In "{DELIVERY}" rows are computed, sent and acknowledged',
)
LAST_COMMIT: Final = Figure(
    "sink.last_commit.timestamp", "gauge", "seconds", ("sink",), "when a batch was last committed, in Unix time"
)
STARTED: Final = Figure(
    "sink.start.timestamp",
    "gauge",
    "seconds",
    ("sink",),
    "when the driver made the sink, in Unix time. Jobs have none. Each start of a driver is another value",
)
OPEN_AGE: Final = Figure(
    "sink.open_transaction.age",
    "gauge",
    "seconds",
    ("sink",),
    "age of the open transaction, 0 when none is open. Readers of its partitions wait until it ends",
)

FIGURES: Final = (
    BATCHES,
    FAILURES,
    TRANSACTIONS,
    ROWS,
    PAYLOAD,
    FRAMES,
    DURATION,
    STEP_TIME,
    LAST_COMMIT,
    STARTED,
    OPEN_AGE,
)


class Labels:
    """Makes values of labels of what comes from data.

    Args:
        jobs: stands for the id of every job.
        topics: how many topics keep their names.
    """

    def __init__(self, jobs: str, topics: int) -> None:
        self._jobs, self._most = jobs, topics
        self._topics: set[str] = set()

    def sink(self, name: str, job: bool) -> str:
        """Return the value of `sink`."""
        return self._jobs if job else name

    def topic(self, name: str) -> str:
        """Return the value of `topic`."""
        if name not in self._topics:
            if len(self._topics) >= self._most:
                return "other"
            self._topics.add(name)
        return name


def first_figures(sink: str, job: bool, now: float) -> Iterator[tuple[Figure, tuple[str, ...], float]]:
    """Yield the counters that a sink begins with, since a rate needs a first value, and when it begins.

    Args: its label; whether it is a job of `eos.write`; Unix time in seconds.
    """
    if not job:
        yield STARTED, (sink,), now
    yield TRANSACTIONS, (sink,), 0
    for outcome in get_args(Outcome):
        yield BATCHES, (sink, outcome), 0
    for error in ERRORS:
        yield FAILURES, (sink, error.__name__), 0


def figures_of(batch: FinishedBatch, labels: Labels, now: float) -> Iterator[tuple[Figure, tuple[str, ...], float]]:
    """Yield what a finished batch adds to each figure: the figure, the values of its labels, and by how much.

    Args:
        batch: that has finished.
        labels: of the exporter.
        now: Unix time in seconds.
    """
    sink = labels.sink(batch.sink, batch.job)
    yield BATCHES, (sink, batch.outcome), 1
    yield TRANSACTIONS, (sink,), batch.attempts
    if batch.error is not None:
        yield FAILURES, (sink, batch.error), 1
    for figure, by_topic in ((ROWS, batch.rows), (PAYLOAD, batch.bytes), (FRAMES, batch.frames)):
        for topic, number in by_topic.items():
            yield figure, (sink, labels.topic(topic)), number
    for step, seconds in (*batch.step_s.items(), (DELIVERY, batch.delivery_s)):
        yield STEP_TIME, (sink, step), seconds
    if batch.outcome == "committed":
        yield DURATION, (sink,), batch.duration_s
        yield LAST_COMMIT, (sink,), now


class OpenTransactions:
    """The sinks that an exporter asks for the age of the open transaction, each for as long as it lives."""

    def __init__(self) -> None:
        self._sinks: weakref.WeakKeyDictionary[LiveSink, str] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def watch(self, sink: LiveSink, label: str) -> None:
        """Ask this sink too, and tell its age under `label`."""
        with self._lock:
            self._sinks[sink] = label

    def ages(self) -> dict[str, float]:
        """Return the age of the oldest open transaction for each label in seconds, 0.0 where none is open."""
        with self._lock:
            sinks = list(self._sinks.items())
        ages: dict[str, float] = {}
        for sink, label in sinks:
            ages[label] = max(ages.get(label, 0.0), sink.open_transaction_s() or 0.0)
        return ages


class ExtraMissing(InvalidInput, ImportError):
    """A library that only an optional extra brings can't be imported."""


def missing(extra: str, error: ImportError) -> ExtraMissing:
    """Return the error to raise for a library that could not be imported. Args: the extra that brings it."""
    return ExtraMissing(
        f"eos.metrics.{extra} needs what can't be imported here: {error}. Install it with pip install "
        f'"spark-pulsar-eos[{extra}]".'
    )
