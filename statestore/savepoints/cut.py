"""Which files of a running query's checkpoint a savepoint takes: what its newest committed batch needs."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

from statestore.bk.names import Directory, FileRecord, Names
from statestore.checkpoint import Entry, Files, committed, needs_of, plain_files
from statestore.errors import CutFailed, InvalidInput, NotFound
from statestore.savepoints.creating import query_of
from statestore.savepoints.manifest import METADATA, Cut

Read = Callable[[str], bytes]
"""Returns the bytes of a file by its path below the checkpoint. Raises NotFound."""


class TreeFiles:
    """A checkpoint in a tree of names, as it was when each directory was first listed; bytes come from `read`.

    Attributes:
        records: of the files in all directories that were listed, by path.
    """

    def __init__(self, names: Names, root: str, read: Read) -> None:
        self._names, self._root, self._read = names, root, read
        self._listed: dict[str, dict[str, Entry]] = {}
        self.records: dict[str, FileRecord] = {}

    def list(self, path: str) -> Mapping[str, Entry]:
        """Return what is in a directory, by name. Empty where there is no directory."""
        if path not in self._listed:
            self._listed[path] = {}
            try:
                found = self._names.list(posixpath.join(self._root, path) if path else self._root)
            except NotFound:
                return {}
            for name, entry in found.items():
                if isinstance(entry, Directory):
                    self._listed[path][name] = Entry(name, 0, entry.mtime_ms, is_directory=True)
                else:
                    self._listed[path][name] = Entry(name, entry.length, entry.mtime_ms)
                    self.records[posixpath.join(path, name)] = entry
        return self._listed[path]

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._read(path)


def choose(files: Files, batch: int | None) -> tuple[int, tuple[str, ...]]:
    """Return the batch and the paths of the files that it needs.

    Args:
        batch: a committed one; None: the newest.

    Raises:
        InvalidInput: there is no such batch, or none at all.
        CutFailed: a file that it needs is missing or can't be read. If it was deleted while we looked, look again.
    """
    batches = committed(files)
    if not batches:
        raise InvalidInput("The checkpoint has no committed batch yet: a savepoint is taken at one")
    if batch is not None and batch not in batches:
        raise InvalidInput(
            f"Batch {batch} is not committed, or was cleaned away. There are {batches[0]} … {batches[-1]}"
        )
    chosen = batches[-1] if batch is None else batch
    needs = needs_of(files, chosen)
    if needs.gaps:
        gap = needs.gaps[0]
        raise CutFailed(f"Batch {chosen} can't be restored: {gap.path}: {gap.reason}; {len(needs.gaps)} such files")
    return chosen, tuple(dict.fromkeys([*needs.files, *plain_files(files)]))


def take(names: Names, root: str, read: Read, batch: int | None = None) -> Cut:
    """Take the cut of a checkpoint in a tree of names.

    Raises:
        NotFound: there is no checkpoint.
        InvalidInput, CutFailed: as `choose`.
    """
    if not isinstance(names.find(root), Directory):
        raise NotFound(f"There is no checkpoint at {root}")
    files = TreeFiles(names, root, read)
    chosen, paths = choose(files, batch)
    missing = [path for path in paths if path not in files.records]
    if missing:
        raise CutFailed(f"Batch {chosen} can't be restored: {missing[0]} is not there; {len(missing)} such files")
    return Cut(chosen, query_of(read(METADATA)), {path: files.records[path] for path in paths})
