"""Exactly-once sink for PySpark Structured Streaming on Apache Pulsar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eos.errors import (
    CommitUnknown,
    DamagedLog,
    EosError,
    Fenced,
    IdentityMismatch,
    InvalidInput,
    NotCommitted,
    ReplayFailed,
    StaleBatch,
    Stopped,
    TookTooLong,
    TopicMissing,
    Unacknowledged,
)

if TYPE_CHECKING:
    from eos.by_name.session import configure_spark, register
    from eos.commit.decision import Identity
    from eos.inspect.views import catalog
    from eos.metrics.batch import FinishedBatch
    from eos.metrics.progress import listener
    from eos.sinks.factory import sink
    from eos.sinks.job import JobResult, write
    from eos.sinks.sink import Batch, Sink

    __version__: str

__all__ = [
    "Batch",
    "CommitUnknown",
    "DamagedLog",
    "EosError",
    "Fenced",
    "FinishedBatch",
    "Identity",
    "IdentityMismatch",
    "InvalidInput",
    "JobResult",
    "NotCommitted",
    "ReplayFailed",
    "Sink",
    "StaleBatch",
    "Stopped",
    "TookTooLong",
    "TopicMissing",
    "Unacknowledged",
    "__version__",
    "catalog",
    "configure_spark",
    "listener",
    "register",
    "sink",
    "write",
]


_LATE = {
    "Batch": "eos.sinks.sink",
    "FinishedBatch": "eos.metrics.batch",
    "Identity": "eos.commit.decision",
    "JobResult": "eos.sinks.job",
    "Sink": "eos.sinks.sink",
    "catalog": "eos.inspect.views",
    "configure_spark": "eos.by_name.session",
    "listener": "eos.metrics.progress",
    "register": "eos.by_name.session",
    "sink": "eos.sinks.factory",
    "write": "eos.sinks.job",
}


def __getattr__(name: str) -> Any:
    """Import the driver's side when it is asked for: `eos local` needs no Spark, and a task not all of this."""
    if name == "__version__":
        from eos.version import own_version

        return own_version()
    if name in _LATE:
        from importlib import import_module

        if _LATE[name].startswith(("eos.by_name", "eos.sinks", "eos.inspect", "eos.metrics.progress")):
            from eos.spark.capabilities import require_pyspark

            require_pyspark()
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'eos' has no attribute {name!r}")
