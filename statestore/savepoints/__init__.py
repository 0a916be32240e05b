"""Savepoints: named, immutable, zero-copy cuts of a running query's checkpoint, and their copies on Pulsar topics.

`restore`, `bookkeeper` and `pulsar_topic` are what programs and the command line call; `cut` chooses the files. How a
savepoint lies in ZooKeeper, and why a crash at any step is safe, the jar's `Savepoints` and `Restoration` tell;
`stream` tells how it lies on a topic.
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
