"""Exactly-once sink for PySpark Structured Streaming on Apache Pulsar."""

from eos.commit import Identity
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
from eos.sink import Batch, Sink, sink

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
