"""This sink, by its tasks: each run is one micro-batch, one transaction."""

from __future__ import annotations

from pyspark.sql import DataFrame

import eos
from eos.metrics.batch import Observers
from eos.sinks.columns import ValueFormat


class ThisSink:
    """Writes a DataFrame in one transaction, commit and all.

    Attributes:
        name: its name in the results.
    """

    name = "this_sink"

    def __init__(
        self,
        df: DataFrame,
        service_url: str,
        topic: str,
        *,
        name: str = name,
        value_format: ValueFormat = "raw",
        tls_trust_certs: str | None = None,
        metrics: Observers | None = None,
    ) -> None:
        self.name = name
        self._df = df
        own = topic.rsplit("/", 1)[-1]
        self._sink = eos.sink(
            service_url,
            topic=topic,
            name=own,
            small_batch_rows=0,
            value_format=value_format,
            tls_trust_certs=tls_trust_certs,
            metrics=metrics,
        )
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
