"""The figures of a query's sources that Spark's progress has, for every exporter.

Tasks see more: entries, bytes, which reader, losses, damaged entries. Spark takes none of it from a Python data source.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from eos.metrics.figures import Figure, Labels

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress

    from eos.metrics.progress import Progress

ROWS: Final = Figure("source.rows", "counter", "row", ("query",), "rows that micro-batches read, as Spark counts them")
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
    "none, or where no limit cuts the batches",
)
LAST_BATCH: Final = Figure(
    "source.last_batch.timestamp",
    "gauge",
    "seconds",
    ("query",),
    "when Spark last reported a micro-batch, in Unix time",
)

SOURCE_FIGURES: Final = (ROWS, LAG, OLDEST_AGE, LAST_BATCH)


class SourceFigures:
    """Makes figures of progress, for one exporter."""

    def __init__(self, labels: Labels) -> None:
        """Args: of the exporter's sources."""
        self._labels = labels
        self._told: dict[str, set[str]] = {}  # query → values of `topic`
        self._lock = threading.Lock()

    def figures_of(self, progress: Progress, now: float) -> Iterator[tuple[Figure, tuple[str, ...], float]]:
        """Yield what a micro-batch adds to each counter, and the value of each gauge.

        Args: the micro-batch; Unix time in seconds.
        """
        spark = progress.spark
        query = spark.name or str(spark.id)
        ours = [source for source in spark.sources if _topics(source)]
        if not ours:
            return
        entries: dict[str, float] = defaultdict(float)
        ages: dict[str, float] = defaultdict(float)
        for lag in progress.lags:
            topic = self._labels.topic(lag.topic)
            entries[topic] += lag.entries
            if lag.oldest_ms is not None:
                ages[topic] = max(ages[topic], now - lag.oldest_ms / 1_000)
        with self._lock:
            told = self._told.setdefault(query, set())
            told |= {self._labels.topic(topic) for source in ours for topic in _topics(source)} | entries.keys()
            topics = sorted(told)
        yield ROWS, (query,), sum(source.numInputRows for source in ours)
        yield LAST_BATCH, (query,), now
        for topic in topics:
            yield LAG, (query, topic), entries[topic]
            yield OLDEST_AGE, (query, topic), ages[topic]


def _topics(source: SourceProgress) -> list[str]:
    """Return the physical topics of a source of ours at the end of the batch, nothing of another source."""
    try:
        end = json.loads(source.endOffset)
    except (TypeError, ValueError):
        return []
    topics = end.get("topics") if isinstance(end, dict) and end.get("version") == 1 else None
    return sorted(topics) if isinstance(topics, dict) else []
