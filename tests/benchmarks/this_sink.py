"""This sink, by its tasks: each run is one micro-batch, one transaction."""

from __future__ import annotations

from pyspark.sql import DataFrame

import eos


class ThisSink:
    """Writes a DataFrame in one transaction, commit and all."""

    name = "this_sink"

    def __init__(self, df: DataFrame, service_url: str, topic: str) -> None:
        self._df = df
        self._sink = eos.sink(service_url, topic=topic, name=topic.rsplit("/", 1)[-1], small_batch_rows=0)
        self._next = 0

    def run(self) -> int:
        """Write the rows; return how many the sink has committed."""
        before = self._sink.metrics.rows
        identity = eos.Identity("benchmark", "benchmark", str(self._next))
        with self._sink.batch(self._next, identity) as txn:
            txn.write(self._df)
        self._next += 1
        return self._sink.metrics.rows - before

    def close(self) -> None:
        """Let go of the sink."""
        self._sink.close()
