"""Which partitions a micro-batch has left messages in, by Spark's own progress of the query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from eos.source.offsets import BEGINNING, Offsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress

_UNKNOWN: Final = ("None", "null")
"""PySpark's words for an offset that is not there, by a listener and from JSON (4.3)."""


def partitions_behind(source: SourceProgress) -> list[str]:
    """Return the physical topics that held messages after the end of a micro-batch, when Spark last asked.

    Spark asks for the newest messages of a source while it plans a batch. So a topic is named where a limit such as
    `maxEntriesPerTrigger` cut the batch, or where messages came in that moment. A query that keeps up has none in
    most of its batches. How many messages there are is not known from this: `eos lag` counts them.

    Args:
        source: one of `progress.sources`, of a source `format("pulsar")`.

    Raises InvalidInput for the progress of another source.
    """
    if source.latestOffset in _UNKNOWN:
        return []
    latest = Offsets.from_json(json.loads(source.latestOffset)).topics
    end = Offsets.from_json(json.loads(source.endOffset)).topics
    return [topic for topic, last in sorted(latest.items()) if last.entry > end.get(topic, BEGINNING).entry]
