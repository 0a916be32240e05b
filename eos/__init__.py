"""Exactly-once sink for PySpark Structured Streaming on Apache Pulsar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eos.commit.decision import Identity
from eos.errors import (
    CommitUnknown,
    DamagedLog,
    EosError,
    Fenced,
    IdentityMismatch,
    InvalidInput,
    NotCommitted,
    StaleBatch,
    Stopped,
    TopicMissing,
)

if TYPE_CHECKING:
    from eos.sinks.sink import Batch, Sink, sink

__all__ = [
    "Batch",
    "CommitUnknown",
    "DamagedLog",
    "EosError",
    "Fenced",
    "Identity",
    "IdentityMismatch",
    "InvalidInput",
    "NotCommitted",
    "Sink",
    "StaleBatch",
    "Stopped",
    "TopicMissing",
    "sink",
]


def __getattr__(name: str) -> Any:
    """Import the driver's side when it is asked for: `eos local` needs no Spark, and a task not all of this."""
    if name in ("Batch", "Sink", "sink"):
        from eos.sinks import sink as driver

        return getattr(driver, name)
    raise AttributeError(f"module 'eos' has no attribute {name!r}")
