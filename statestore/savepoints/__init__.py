"""Savepoints: named, immutable, zero-copy cuts of a running query's checkpoint, and their copies on Pulsar topics.

Programs and the command line call `restore`, `bookkeeper` and `pulsar_topic`. `statestore.checkpoint.cut` chooses the
files. The jar's `Savepoints` and `Restoration` say how a savepoint lies in ZooKeeper, and why a crash at any step is
safe. `stream` says how it lies on a topic.
"""

from __future__ import annotations

from statestore.savepoints.bookkeeper import create, delete, list_savepoints
from statestore.savepoints.periodic import periodic_savepoints
from statestore.savepoints.restoration import restore
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.stop import stop_with_savepoint

__all__ = [
    "Savepoint",
    "create",
    "delete",
    "list_savepoints",
    "periodic_savepoints",
    "restore",
    "stop_with_savepoint",
]
