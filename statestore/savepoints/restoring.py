"""`restore`: a savepoint as a new checkpoint location, whose files are in the savepoint's own ledgers.

Each step is one multi, or some of the same kind, and checks that the savepoint is still ready: its references keep the
ledgers, so that the new ones can be made.

1. The directories above the target. A crash leaves empty directories.
2. create(target), and in it an empty file `metadata`. From here on the name is taken. Spark doesn't start a query on a
   checkpoint whose metadata it can't read: what is half restored is not used.
3. Directories, then files: create(file), create(its reference), each with a new write id. The few that name the
   checkpoint's own address are written anew. A crash leaves a target that Spark refuses; delete it, and restore again.
4. The files of `commits/`, and last, in one multi, the true `metadata` in place of the empty one. A crash before: as
   above. After: the checkpoint is whole.
"""

from __future__ import annotations

import contextlib
import posixpath
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from statestore.bk.names import FileRecord, Names
from statestore.bk.records import NO_LEDGER
from statestore.bk.zookeeper import Operation, Refused, split
from statestore.errors import Damaged, InvalidInput, StateStoreError, Unavailable
from statestore.savepoints import store
from statestore.savepoints.folder import names_its_place
from statestore.savepoints.manifest import METADATA, Savepoint, restore_order

_ENTRY_SIZE = 1 << 20


Rewrite = Callable[[dict[str, int]], None]
"""Writes files of the new checkpoint anew: those that name its address; by path in the tree, with their lengths."""


def restore(names: Names, name: str, target: str, rewrite: Rewrite | None = None) -> Savepoint:
    """Make a checkpoint at `target`, a path in the savepoint's tree, as it was at the savepoint's batch.

    No byte of state is copied. The same query resumes from it.

    Args:
        rewrite: None: no file is changed; then an operator with v2 metadata goes on reading the schemas of the
            original.

    Raises:
        NotFound: there is no such savepoint.
        InvalidInput: it is not ready, or there is something at the target.
        Unavailable: the savepoint was deleted meanwhile, or ZooKeeper was lost.
        Damaged: a ledger that it holds is gone.
    """
    savepoint, files, ready = store.read(names, name)
    restoration = _Restoration(names, name, target, ready)
    names.make_directories(posixpath.dirname(target))
    guard = restoration.take()
    try:
        restoration.fill(files, guard, rewrite)
    except BaseException:
        with contextlib.suppress(StateStoreError):
            names.remove_tree(target)
        raise
    return savepoint


class _Restoration:
    def __init__(self, names: Names, savepoint: str, target: str, ready: Operation) -> None:
        self._names, self._savepoint, self._target, self._ready = names, savepoint, target, ready
        self._writer = uuid.uuid4().hex[:16]
        self._written = 0

    def take(self) -> FileRecord:
        """Make the target with an empty `metadata`, and return that file's record."""
        now_ms = time.time_ns() // 1_000_000
        guard = FileRecord(self._write_id(), 0, NO_LEDGER, 0, -1, _ENTRY_SIZE, 0, 0, now_ms)
        make = [
            self._ready,
            self._names.check_directory(posixpath.dirname(self._target)),
            *self._names.create_directory(self._target),
            *self._names.create_file(posixpath.join(self._target, METADATA), guard),
        ]
        try:
            self._names.zookeeper.write(make, lambda: self._names.has_reference(guard))
        except Refused as refused:
            if refused.why == "NodeExistsError":
                raise InvalidInput(
                    f"There is something at {self._target}: a savepoint is restored to a new place"
                ) from refused
            raise self._failed(refused) from refused
        return guard

    def fill(self, files: Mapping[str, FileRecord], guard: FileRecord, rewrite: Rewrite | None) -> None:
        """Make the files; those of `commits/` late, and the true `metadata` at the very end."""
        for multi in split(self._names.create_directory(self._at(path)) for path in _directories(files)):
            self._put(multi)
        ordered = sorted(files.keys() - {METADATA}, key=restore_order)
        for multi in split(self._file(path, files[path]) for path in ordered):
            self._put(multi)
        naming = {self._at(path): files[path].length for path in ordered if names_its_place(path)}
        if rewrite is not None and naming:
            rewrite(naming)
        last = [*self._names.remove_file(self._at(METADATA), guard)]
        if METADATA in files:
            last += self._file(METADATA, files[METADATA])
        self._put(last)

    def _put(self, operations: list[Operation]) -> None:
        zookeeper = self._names.zookeeper
        made = [operation.path for operation in operations if operation.kind == "create"]
        happened = zookeeper.there(made[-1]) if made else zookeeper.gone(operations[-1].path)
        try:
            zookeeper.write([self._ready, *operations], happened)
        except Refused as refused:
            raise self._failed(refused) from refused

    def _file(self, path: str, record: FileRecord) -> tuple[Operation, ...]:
        copy = replace(record, write=self._write_id(), generation=0)
        return self._names.create_file(self._at(path), copy)

    def _write_id(self) -> str:
        self._written += 1
        return f"{self._writer}-{self._written}"

    def _at(self, path: str) -> str:
        return posixpath.join(self._target, path)

    def _failed(self, refused: Refused) -> StateStoreError:
        if refused.position == 0:
            return Unavailable(f"Savepoint {self._savepoint} was deleted while it was being restored")
        if refused.why == "NoNodeError" and f"{self._names.root}/L/" in str(refused):
            return Damaged(f"A ledger that savepoint {self._savepoint} holds is gone: {refused}")
        return Unavailable(
            f"{self._target} was changed while savepoint {self._savepoint} was being restored: {refused}"
        )


def _directories(files: Iterable[str]) -> list[str]:
    """The directories that these files lie in, those above first."""
    found: set[str] = set()
    for path in files:
        while (path := posixpath.dirname(path)) and path not in found:
            found.add(path)
    return sorted(found)
