"""The figures of a query's sources that Spark's progress has, for every exporter.

The driver has planned them. Spark takes none from the tasks of a Python data source: but rows can be counted, by
`eos.metrics.observed_rows`.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from eos.metrics.figures import Figure, Labels
from eos.metrics.observed_rows import ObservedRows, observed_in
from eos.metrics.source_report import READERS, SourceReport, offset_in

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress

    from eos.metrics.progress import Progress

ROWS: Final = Figure("source.rows", "counter", "row", ("query",), "rows that micro-batches read, as Spark counts them")
PLANNED: Final = Figure(
    "source.planned.entries",
    "counter",
    "entry",
    ("query", "reader"),
    "stored entries that the driver planned for tasks, with markers and aborted ones, by where tasks were to read "
    "them: brokers, bookies or offloaded. It is not known what a task made of them. A lower bound where they lie in "
    "several ledgers and the source has no `admin.url`",
)
LOSSES: Final = Figure(
    "source.losses",
    "counter",
    "loss",
    ("query",),
    "losses of data that the driver has warned of, with `failOnDataLoss=false`. A loss that a task finds is in its log "
    "only",
)
DAMAGED: Final = Figure(
    "source.damaged.rows",
    "counter",
    "row",
    ("query",),
    "rows of entries and messages that cannot be read, with `onDamagedEntry=keep`, of a query that observes its rows",
)
VALUES: Final = Figure(
    "source.values",
    "counter",
    "bytes",
    ("query",),
    "bytes of the column `value` that Spark has read, of a query that observes its rows",
)
LAG: Final = Figure(
    "source.lag.entries",
    "gauge",
    "entry",
    ("query", "topic"),
    "stored entries of a partition after the end of the newest micro-batch, with markers and aborted ones. 0 where it "
    "keeps up. A lower bound where they lie in several ledgers and the source has no `admin.url`",
)
OLDEST_AGE: Final = Figure(
    "source.oldest_unread.age",
    "gauge",
    "seconds",
    ("query", "topic"),
    "age of the first message after the end of the newest micro-batch, when Spark reported the batch. 0 where there is "
    "none. It keeps its value where nobody knows the age: no limit cuts the batches, or the brokers did not tell",
)
LAST_BATCH: Final = Figure(
    "source.last_batch.timestamp",
    "gauge",
    "seconds",
    ("query",),
    "when Spark last reported a micro-batch, in Unix time",
)

SOURCE_FIGURES: Final = (ROWS, PLANNED, LOSSES, DAMAGED, VALUES, LAG, OLDEST_AGE, LAST_BATCH)


class SourceFigures:
    """Makes figures of progress, for one exporter."""

    def __init__(self, labels: Labels) -> None:
        """Args: of the exporter's sources."""
        self._labels = labels
        self._told: dict[str, dict[int, set[str]]] = {}  # query → place of the source → values of `topic`
        self._losses: dict[tuple[str, int], tuple[str, int]] = {}  # query, place of the source → its run, losses then
        self._lock = threading.Lock()

    def figures_of(self, progress: Progress, now: float) -> Iterator[tuple[Figure, tuple[str, ...], float]]:
        """Yield what a micro-batch adds to each counter, and the value of each gauge that it tells of.

        A source without a report, or whose lags are not known, tells nothing of what is unread. The gauges of its
        topics keep their values.

        Args: the micro-batch; Unix time in seconds.
        """
        spark = progress.spark
        query = spark.name or str(spark.id)
        ours = {place: source for place, source in enumerate(spark.sources) if _topics(source)}
        if not ours:
            return
        entries: dict[str, float] = defaultdict(float)
        ages: dict[str, float] = defaultdict(float)
        for lag in progress.lags:
            topic = self._labels.topic(lag.topic)
            entries[topic] += lag.entries
            if lag.oldest_ms is not None:
                ages[topic] = max(ages[topic], now - lag.oldest_ms / 1_000)
        topics = self._told_topics(query, ours, progress.reports)
        planned = [one for report in progress.reports if report is not None for one in report.planned]
        yield ROWS, (query,), sum(source.numInputRows for source in ours.values())
        for reader in READERS:
            yield PLANNED, (query, reader), sum(one.entries for one in planned if one.reader == reader)
        yield LOSSES, (query,), self._new_losses(query, str(spark.runId), progress.reports)
        observed = observed_in(spark) or ObservedRows()
        yield DAMAGED, (query,), observed.damaged
        yield VALUES, (query,), observed.value_bytes
        yield LAST_BATCH, (query,), now
        for topic in topics:
            yield LAG, (query, topic), entries.get(topic, 0)
            if topic in ages or topic not in entries:  # else it is not known, and 0 would end an alert
                yield OLDEST_AGE, (query, topic), ages.get(topic, 0)

    def _told_topics(
        self, query: str, ours: Mapping[int, SourceProgress], reports: Sequence[SourceReport | None]
    ) -> list[str]:
        """Return the values of `topic` of this query's sources, but for those of a source without a report."""
        silent = set[str]()
        with self._lock:
            told = self._told.setdefault(query, {})
            for place, source in ours.items():
                report = reports[place] if place < len(reports) else None
                topics = [*_topics(source), *(lag.topic for lag in (() if report is None else report.lags))]
                told.setdefault(place, set()).update(map(self._labels.topic, topics))
                if report is None or not report.lags_known:
                    silent |= told[place]
            return sorted(set[str]().union(*told.values()) - silent)

    def _new_losses(self, query: str, run: str, reports: Sequence[SourceReport | None]) -> int:
        """Return how many losses were added since the last report of each source, which counts those of its run."""
        new = 0
        with self._lock:
            for place, report in enumerate(reports):
                if report is not None:
                    known_run, known = self._losses.get((query, place), (run, 0))
                    new += report.losses - (known if known_run == run and known <= report.losses else 0)
                    self._losses[query, place] = run, report.losses
        return new


def _topics(source: SourceProgress) -> list[str]:
    """Return the physical topics of a source of ours at the end of the batch, nothing of another source."""
    end = offset_in(source.endOffset)
    return [] if end is None else sorted(end["topics"])
