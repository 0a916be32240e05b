"""Spark's progress of each micro-batch beside what the sink and the source say of it, for those on call.

Spark asks no figures of `foreachBatch`: in its progress the sink has -1 rows, and what is observed
(`DataFrame.observe`) in the batch function does not appear; only what is observed before `writeStream` does (Spark
4.3). So the two are joined here, by the run and the number of the batch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from eos.config import name_of
from eos.errors import InvalidInput
from eos.metrics.batch import FinishedBatch
from eos.metrics.source_report import PartitionLag, SourceReport, report_of
from eos.steps import COMMIT_STEPS

log = logging.getLogger("eos.progress")

_KEPT: Final = 1_000
"""Batches that are kept until Spark tells of them; it tells nothing of a batch that failed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A micro-batch that Spark has noted as done.

    Attributes:
        spark: Spark's progress, with `numInputRows`, `durationMs`, `stateOperators`, `observedMetrics` and others.
        written: the report of each sink that was given the listener. Empty where no such sink was in the batch
            function.
        reports: the report of each of the query's sources, in the order of `spark.sources`. None for another source
            than `format("pulsar")`, and in a batch that Spark has run again after a restart.
    """

    spark: StreamingQueryProgress
    written: tuple[FinishedBatch, ...]
    reports: tuple[SourceReport | None, ...] = ()

    @property
    def lags(self) -> tuple[PartitionLag, ...]:
        """What the batch has left unread of each physical topic. Topics of which it has left nothing are not there."""
        return tuple(lag for report in self.reports if report is not None for lag in report.lags)

    def line(self) -> str:
        """Return the batch in one line."""
        spark = self.spark
        times = {name: ms / 1_000 for name, ms in spark.durationMs.items()}
        whole = times.pop("triggerExecution", spark.batchDuration / 1_000)
        longest = sorted((item for item in times.items() if item[1]), key=lambda item: -item[1])
        parts = [
            f"query {spark.name or spark.id}, batch {spark.batchId}: {spark.numInputRows:,} rows in, {whole:.3f} s"
            f"{' with ' if longest else ''}{', '.join(f'{name} {seconds:.3f}' for name, seconds in longest)}",
            *map(_of_sink, self.written),
        ]
        parts += _of_reports([report for report in self.reports if report is not None])
        if self.lags:
            parts.append(_of_lags(self.lags, time.time()))
        if spark.stateOperators:
            parts.append(f"state {sum(one.numRowsTotal for one in spark.stateOperators):,} rows")
        parts += [f"observed {name} {row.asDict()}" for name, row in spark.observedMetrics.items()]
        return "; ".join(parts)


def _of_sink(batch: FinishedBatch) -> str:
    rows, commit_s = sum(batch.rows.values()), sum(batch.step_s.get(step.value, 0.0) for step in COMMIT_STEPS)
    return (
        f"sink {batch.sink} {batch.outcome} {rows:,} rows in {batch.duration_s:.3f} s with delivery "
        f"{batch.delivery_s:.3f}, commit {commit_s:.3f}, attempts {batch.attempts}"
    )


def _of_reports(reports: Sequence[SourceReport]) -> Iterator[str]:
    planned = [one for report in reports for one in report.planned]
    if planned:
        by_reader = Counter[str]()
        for one in planned:
            by_reader[one.reader] += one.entries
        least = "" if all(one.whole for one in planned) else "at least "
        from_each = ", ".join(f"{entries:,} from {reader}" for reader, entries in by_reader.items())
        yield f"{least}{by_reader.total():,} entries planned: {from_each}"
    if losses := sum(report.losses for report in reports):
        yield f"{losses} losses of data since the query began"
    if not all(report.lags_known for report in reports):
        yield "the entries left are not known"


def _of_lags(lags: Sequence[PartitionLag], now: float) -> str:
    entries, least = sum(one.entries for one in lags), "" if all(one.whole for one in lags) else "at least "
    oldest_ms = min((one.oldest_ms for one in lags if one.oldest_ms is not None), default=None)
    age = "" if oldest_ms is None else f", the oldest {max(0.0, now - oldest_ms / 1_000):,.0f} s old"
    return f"{least}{entries:,} entries left in {len(lags)} partitions{age}"


def tell(progress: Progress) -> None:
    """Log a batch in one line of level INFO, by the logger `eos.progress`."""
    log.info("%s", progress.line())


class ProgressListener(StreamingQueryListener):
    """Joins the two; made by `eos.listener`. It is an observer of the sink, and a listener of Spark."""

    def __init__(self, then: Sequence[Callable[[Progress], object]]) -> None:
        self._then = then
        self._finished: dict[tuple[str, int], tuple[FinishedBatch, ...]] = {}
        self._lock = threading.Lock()

    def __call__(self, batch: FinishedBatch) -> None:
        """Keep a finished batch until Spark tells of it."""
        if batch.run_id is None or batch.job:
            return
        key = (batch.run_id, batch.batch_id)
        with self._lock:
            self._finished[key] = (*self._finished.get(key, ()), batch)
            while len(self._finished) > _KEPT:
                del self._finished[next(iter(self._finished))]

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  Spark's name, as those below
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Tell of a micro-batch."""
        spark = event.progress
        with self._lock:
            written = self._finished.pop((str(spark.runId), spark.batchId), ())
        progress = Progress(spark, written, tuple(map(report_of, spark.sources)))
        for then in self._then:
            try:
                then(progress)
            except Exception:  # it must not keep the batch from those after it
                log.exception("%s raised. The query is not affected, nor is any other function.", name_of(then))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Forget the batches that Spark will not report."""
        run = str(event.runId)
        with self._lock:
            self._finished = {key: batches for key, batches in self._finished.items() if key[0] != run}


def listener(*then: Callable[[Progress], object]) -> ProgressListener:
    """Join Spark's progress of each micro-batch with the figures of the sinks in it.

    Give the listener to the sink, `eos.sink(..., metrics=listener)`, and to Spark,
    `spark.streams.addListener(listener)`. Spark reports a batch a moment after its end. It does not report failed
    batches. Only the sink reports these.

    Args:
        then: functions that are called in turn for each micro-batch, in a thread of Spark's listeners, such as
            `PrometheusMetrics().on_progress`. Default: `eos.metrics.progress.tell`, a line of level INFO by the logger
            `eos.progress`. The logger writes an error of one, which reaches neither the query nor another function.

    Raises:
        InvalidInput: one of them can't be called.
    """
    for one in then:
        if not callable(one):
            raise InvalidInput(
                f"eos.listener() was given {type(one).__name__}, which can't be called. Give functions, each by "
                "itself: eos.listener(one, other)."
            )
    return ProgressListener(then or (tell,))
