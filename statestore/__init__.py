"""Spark's checkpoints and streaming state as BookKeeper ledgers: the file system `bk://`, and tools for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statestore.bk.address import BkAddress
from statestore.errors import CutFailed, Damaged, InvalidInput, JarMissing, NotFound, StateStoreError, Unavailable
from statestore.hadoop.jar import jar_path

if TYPE_CHECKING:
    from statestore.checkpoint.difference import state_difference
    from statestore.checkpoint.listing import read_state, snapshots
    from statestore.checkpoint.verification import verify
    from statestore.hadoop.session import configure_spark
    from statestore.rewriting.bootstrapping import bootstrap
    from statestore.rewriting.rescaling import rescale
    from statestore.savepoints.periodic import periodic_savepoints
    from statestore.savepoints.restoration import restore
    from statestore.savepoints.stop import stop_with_savepoint

__all__ = [
    "BkAddress",
    "CutFailed",
    "Damaged",
    "InvalidInput",
    "JarMissing",
    "NotFound",
    "StateStoreError",
    "Unavailable",
    "bootstrap",
    "configure_spark",
    "jar_path",
    "periodic_savepoints",
    "read_state",
    "rescale",
    "restore",
    "snapshots",
    "state_difference",
    "stop_with_savepoint",
    "verify",
]

# Imported when asked for: the command line needs Spark for few of its verbs.
_LATE = {
    "bootstrap": "statestore.rewriting.bootstrapping",
    "configure_spark": "statestore.hadoop.session",
    "periodic_savepoints": "statestore.savepoints.periodic",
    "read_state": "statestore.checkpoint.listing",
    "rescale": "statestore.rewriting.rescaling",
    "restore": "statestore.savepoints.restoration",
    "snapshots": "statestore.checkpoint.listing",
    "state_difference": "statestore.checkpoint.difference",
    "stop_with_savepoint": "statestore.savepoints.stop",
    "verify": "statestore.checkpoint.verification",
}


def __getattr__(name: str) -> Any:
    """Import what needs Spark when it is asked for."""
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'statestore' has no attribute {name!r}")
