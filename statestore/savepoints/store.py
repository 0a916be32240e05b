"""Savepoints in ZooKeeper: how they lie there, and reading them.

    /sp/NAME              building, of what and since when; later ready, with batch and counts; or deleting
    /sp/NAME/build-ID     ephemeral: its maker lives, and nobody has begun to delete it
    /sp/NAME/files-00000  the list of files, packed, in chunks
    /sp/NAME/delete-ID    somebody has begun to delete it
    /L/id/s-NAME          a ledger that is held

`build-ID` and `delete-ID` are new for each making and each deletion, and every step checks its own: whoever slept
through the end of a savepoint can't touch a later one of that name. `building` and `deleting` tell the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from statestore.bk.names import SAVEPOINT, FileRecord, Names
from statestore.bk.zookeeper import Operation
from statestore.errors import InvalidInput, NotFound
from statestore.savepoints.manifest import Savepoint, check_name, unpack

BUILD = "build-"
DELETE = "delete-"
FILES = "files-"


def path_of(names: Names, name: str) -> str:
    """The znode of a savepoint."""
    return f"{names.root}/sp/{check_name(name)}"


def reference_of(names: Names, name: str, ledger: str | int) -> str:
    """The znode by which a savepoint holds a ledger."""
    return f"{names.ledger(str(ledger))}/{SAVEPOINT}{name}"


def chunk_of(names: Names, name: str, number: int) -> str:
    """The znode of a part of the list of files."""
    return f"{path_of(names, name)}/{FILES}{number:05}"


def children_of(names: Names, name: str, prefix: str = "") -> Sequence[str]:
    """The znodes below a savepoint's whose names begin so."""
    path = path_of(names, name)
    return [f"{path}/{child}" for child in names.zookeeper.children(path) or [] if child.startswith(prefix)]


def all_savepoints(names: Names) -> list[Savepoint]:
    """Return the savepoints of a tree, in whatever state, oldest first.

    Raises:
        Damaged: the record of one cannot be read.
    """
    found = (find(names, name) for name in names.zookeeper.children(f"{names.root}/sp") or [])
    return sorted((one for one in found if one is not None), key=lambda one: (one.created_ms, one.name))


def find(names: Names, name: str) -> Savepoint | None:
    """Return a savepoint in whatever state, or None.

    Raises:
        InvalidInput: no name for a savepoint.
        Damaged: its record cannot be read.
    """
    path = path_of(names, name)
    while (node := names.zookeeper.node(path)) is not None:
        savepoint = Savepoint.decode(name, node.data)
        if savepoint.state != "building" or children_of(names, name, BUILD):
            return savepoint
        # Without its maker and still not ready, once and again: it was not made ready in between, so it never will be.
        again = names.zookeeper.node(path)
        if again is not None and again.version == node.version:
            return replace(savepoint, state="abandoned")
    return None


def read(names: Names, name: str) -> tuple[Savepoint, dict[str, FileRecord], Operation]:
    """Return a ready savepoint, its files by path, and the check that it still is: a part of a multi.

    Raises:
        NotFound: there is none of that name.
        InvalidInput: it is not ready.
        Damaged: its list of files is not what was written.
    """
    path = path_of(names, name)
    node = names.zookeeper.node(path)
    if node is None:
        known = ", ".join(savepoint.name for savepoint in all_savepoints(names)) or "none"
        raise NotFound(f"There is no savepoint {name} in this tree. There are: {known}")
    savepoint = Savepoint.decode(name, node.data)
    if savepoint.state != "ready":
        raise InvalidInput(f"Savepoint {name} is not ready but {savepoint.state}: it cannot be restored")
    chunks = names.zookeeper.nodes(chunk_of(names, name, number) for number in range(savepoint.chunks))
    files = unpack(savepoint, [chunk.data for chunk in chunks if chunk is not None])
    return savepoint, files, Operation("check", path, version=node.version)
