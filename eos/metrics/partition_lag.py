"""The messages of a topic that a streaming query has not read, in Spark's progress of the query.

Spark takes no metrics from a Python data source, and the source plans a query in a process of its own. But the source
also reports the newest offset, which Spark copies into the progress and uses for nothing else. So the lag lies there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress

KEY: Final = "lag"
"""Where the lag lies in the newest offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The messages of one physical topic after the end of a micro-batch, when the batch was planned.

    Attributes:
        topic: the physical topic's full name.
        entries: stored entries up to the last one that can be read, transaction markers and aborted entries among them.
            0 for none. A producer that batches puts many messages into an entry.
        whole: False where there are more, in ledgers whose sizes are not known.
        oldest_ms: when the oldest of these messages was published, in milliseconds since 1970; None where that is not
            known.
    """

    topic: str
    entries: int
    whole: bool = True
    oldest_ms: int | None = None

    @classmethod
    def from_json(cls, topic: str, told: Mapping[str, Any]) -> PartitionLag:
        """Read what `as_json` gave."""
        return cls(topic=topic, entries=told["entries"], whole=told.get("whole", True), oldest_ms=told.get("oldest_ms"))

    def as_json(self) -> dict[str, Any]:
        """Return the lag without the topic, in as few words as can be."""
        found: dict[str, Any] = {"entries": self.entries}
        if not self.whole:
            found["whole"] = False
        if self.oldest_ms is not None:
            found["oldest_ms"] = self.oldest_ms
        return found


def partition_lags(source: SourceProgress) -> list[PartitionLag]:
    """Return the lag of each physical topic of a source, by their names. Nothing for a source that is not ours.

    Spark asks for it while it plans a batch. So a topic has a lag where a limit such as `maxEntriesPerTrigger` cut the
    batch, or where messages came in that moment. A query that keeps up has none in most of its batches.

    Args:
        source: one of `progress.sources`.
    """
    try:
        newest = json.loads(source.latestOffset)
    except (TypeError, ValueError):  # another source; or the first report of this one, None in PySpark's words
        return []
    lags = newest.get(KEY) if isinstance(newest, dict) else None
    return [PartitionLag.from_json(topic, told) for topic, told in sorted((lags or {}).items())]
