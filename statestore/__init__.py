"""Spark's checkpoints and streaming state as BookKeeper ledgers: the file system `bk://`, and tools for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statestore.address import Address
from statestore.errors import CutFailed, Damaged, InvalidInput, JarMissing, NotFound, StateStoreError, Unavailable
from statestore.jar import jar_path

if TYPE_CHECKING:
    from statestore.listing import read_state, snapshots
    from statestore.spark import configure_spark
    from statestore.verification import verify

__all__ = [
    "Address",
    "CutFailed",
    "Damaged",
    "InvalidInput",
    "JarMissing",
    "NotFound",
    "StateStoreError",
    "Unavailable",
    "configure_spark",
    "jar_path",
    "read_state",
    "snapshots",
    "verify",
]

# Imported when asked for: the command line needs Spark for few of its verbs.
_LATE = {
    "configure_spark": "statestore.spark",
    "read_state": "statestore.listing",
    "snapshots": "statestore.listing",
    "verify": "statestore.verification",
}


def __getattr__(name: str) -> Any:
    """Import what needs Spark when it is asked for."""
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'statestore' has no attribute {name!r}")
