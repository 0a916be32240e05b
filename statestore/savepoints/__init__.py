"""Savepoints: named, immutable, zero-copy cuts of a running query's checkpoint, and their copies on Pulsar topics.

`bookkeeper` and `portable` are what programs and the command line call. `building`, `deleting` and `restoring` tell
step by step why a crash is safe; `store` draws how a savepoint lies in ZooKeeper, `stream` how it lies on a topic.
"""

from __future__ import annotations

from statestore.savepoints.bookkeeper import create, delete, list_savepoints, restore
from statestore.savepoints.manifest import Savepoint

__all__ = ["Savepoint", "create", "delete", "list_savepoints", "restore"]
