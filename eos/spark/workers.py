"""Which of Spark's Python processes this one is, where a data source behaves differently in one of them."""

from __future__ import annotations

import sys

PUSHES_FILTERS = "pyspark.sql.worker.data_source_pushdown_filters"
ENDS_A_MICRO_BATCH = "pyspark.sql.worker.python_streaming_sink_runner"


def is_worker(module: str) -> bool:
    """Whether this process is the worker that runs a module of Spark's: of a daemon, or started for it alone."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    return module in sys.modules or getattr(started, "name", None) == module
