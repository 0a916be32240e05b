"""Ways in which people use a `StreamingQueryListener` beside the function of `foreachBatch`."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

import eos
from tests.integration.sinks.ways import Batch, Use, way


class Listener(StreamingQueryListener):
    """Does something after each batch of one run, and is let go at the end of it."""

    def __init__(self, use: Use, after_each: Callable[[int], None]) -> None:
        self._spark = use.spark
        self._after_each = after_each
        self._run = ""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  Spark's name
        self._run = self._run or str(event.runId)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if str(event.progress.runId) == self._run:
            self._after_each(event.progress.batchId)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        if str(event.runId) == self._run:
            self._spark.streams.removeListener(self)


def listened_to(use: Use, sink: eos.Sink, after_each: Callable[[int], None]) -> Batch:
    use.spark.streams.addListener(Listener(use, after_each))
    return sink


@way()
def beside_a_slow_listener(use: Use) -> Batch:
    return listened_to(use, use.sink(), lambda _: time.sleep(2))


@way(soak=True)
def beside_a_listener_that_fails(use: Use) -> Batch:
    def fail(batch_id: int) -> None:
        raise RuntimeError(f"the user's listener fails after batch {batch_id}")

    return listened_to(use, use.sink(), fail)


@way()
def closed_by_a_listener(use: Use) -> Batch:
    """The listener is told of a batch while the next one may be under way."""
    sink = use.sink()
    return listened_to(use, sink, lambda _: sink.close())
