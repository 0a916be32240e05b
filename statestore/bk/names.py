"""The tree of names in ZooKeeper, as the jar keeps it: reading all of it, writing what savepoints and restores need.

    /n/path    file: its FileRecord, znode version 0            directory: empty, znode version 1
    /L/id      ledger: owner and state; children = references: one per file (w: "generation path", znode version =
               generation), one per savepoint (s-NAME)
    /w/proc    a writer process, with an ephemeral child        /del/id    a deletion under way
    /sp/NAME   a savepoint

Why so: see the jar's `Names`. In short: whatever is put into a directory checks the directory's version, since
ZooKeeper lets a file have children; and a ledger's znode can't be deleted while it has a reference.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator, Sequence
from types import TracebackType

from statestore.bk.address import Address
from statestore.bk.records import (
    EMPTY,
    SAVEPOINT,
    Directory,
    FileRecord,
    LedgerRecord,
    decode_name,
    encode_path,
    reference_text,
    referenced_path,
)
from statestore.bk.zookeeper import Node, Operation, Refused, ZooKeeper, split
from statestore.errors import InvalidInput, NotFound, Unavailable

__all__ = ["EMPTY", "SAVEPOINT", "Directory", "FileRecord", "LedgerRecord", "Names"]
_ATTEMPTS = 30


class Names:
    """A session on one tree of names. Usable as a context manager; safe for one thread at a time.

    Attributes:
        zookeeper: the session.
        root: the tree's path in ZooKeeper.
    """

    def __init__(self, zookeeper: ZooKeeper, root: str) -> None:
        self.zookeeper = zookeeper
        self.root = root

    @classmethod
    def connect(cls, address: Address) -> Names:
        """Open a session for the tree that an address lies in.

        Raises:
            Unavailable: no ZooKeeper answers.
            NotFound: no file was ever written to that tree.
        """
        zookeeper = ZooKeeper.connect(address)
        try:
            if zookeeper.node(f"{address.root}/n") is None:
                raise NotFound(
                    f"ZooKeeper {address.servers} has no files of bk:// under {address.root}: nothing was written yet, "
                    "or fs.bk.root is another"
                )
        except BaseException:
            zookeeper.close()
            raise
        return cls(zookeeper, address.root)

    def close(self) -> None:
        """End the session."""
        self.zookeeper.close()

    def __enter__(self) -> Names:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session."""
        self.close()

    @property
    def identity(self) -> str:
        """The tree's identity, which each of its ledgers carries as custom metadata `eos.root`."""
        node = self.zookeeper.node(self.root)
        return "" if node is None else node.data.decode()

    def find(self, path: str) -> FileRecord | Directory | None:
        """Return what is at the path, or None."""
        return _entry(path, self.zookeeper.node(self.name(path)))

    def list(self, path: str) -> dict[str, FileRecord | Directory]:
        """Return what is in a directory, by name; names that go meanwhile are left out.

        Raises:
            NotFound: there is no such directory.
        """
        znode = self.name(path)
        names = self.zookeeper.children(znode)
        if names is None:
            raise NotFound(f"{path} does not exist")
        nodes = self.zookeeper.nodes(f"{znode}/{name}" for name in names)
        found = {decode_name(name): _entry(f"{path}/{name}", node) for name, node in zip(names, nodes, strict=True)}
        return {name: entry for name, entry in found.items() if entry is not None}

    def walk(self, path: str) -> Iterator[tuple[str, FileRecord]]:
        """Return all files at or below a path, by their full paths, directory by directory.

        Not a cut: files may come and go meanwhile; a directory that goes is skipped.

        Raises:
            NotFound: nothing is there.
        """
        files, directories = self._below(path)
        if not files and not directories:
            raise NotFound(f"{path} does not exist")
        yield from files

    def ledgers(self) -> Iterator[LedgerRecord]:
        """Return every registered ledger; those that are freed meanwhile are left out."""
        ids = [name for name in self.zookeeper.children(f"{self.root}/L") or [] if name != EMPTY]
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            nodes = list(self.zookeeper.nodes(self.ledger(name) for name in some))
            references = self.zookeeper.children_of(self.ledger(name) for name in some)
            for name, node, children in zip(some, nodes, references, strict=True):
                if node is not None and children is not None:
                    yield LedgerRecord.decode(int(name), node.data, tuple(children))

    def references(self, ledger: int) -> dict[str, str]:
        """Return a ledger's references: name to the path that it says; a savepoint's says none."""
        znode = self.ledger(str(ledger))
        names = self.zookeeper.children(znode) or []
        nodes = self.zookeeper.nodes(f"{znode}/{name}" for name in names)
        return {
            name: "" if name.startswith(SAVEPOINT) else referenced_path(node.data)
            for name, node in zip(names, nodes, strict=True)
            if node is not None
        }

    def writers(self) -> dict[str, bool]:
        """Return the writer processes that are known: id to whether its session lives."""
        names = self.zookeeper.children(f"{self.root}/w") or []
        living = self.zookeeper.exist(f"{self.root}/w/{name}/alive" for name in names)
        return dict(zip(names, living, strict=True))

    def deletions(self) -> tuple[int, ...]:
        """Return the ledgers whose deletion is under way."""
        return tuple(int(name) for name in self.zookeeper.children(f"{self.root}/del") or [])

    def make_directories(self, path: str) -> None:
        """Make a directory and those above it.

        Raises:
            InvalidInput: a file is in the way.
        """
        for _ in range(_ATTEMPTS):
            missing = []
            at = path
            while (entry := self.find(at)) is None:
                missing.append(at)
                at = posixpath.dirname(at)
            if isinstance(entry, FileRecord):
                raise InvalidInput(f"{at} is a file; a directory was expected there")
            if not missing:
                return
            operations = [self.check_directory(at)]
            for directory in reversed(missing):
                operations += self.create_directory(directory)
            try:
                self.zookeeper.write(operations, lambda: isinstance(self.find(path), Directory))
            except Refused:
                continue  # somebody else was quicker, with a part of it or all
            return
        raise InvalidInput(f"Others keep changing the directories above {path}")

    def remove_tree(self, path: str) -> None:
        """Remove what is at the path and below it. Does nothing where nothing is.

        Raises:
            Unavailable: others keep putting files there, or ZooKeeper was lost.
        """
        for _ in range(_ATTEMPTS):
            files, directories = self._below(path)
            groups = [
                *(self.remove_file(*file) for file in files),
                *((Operation("delete", self.name(directory), version=1),) for directory in reversed(directories)),
            ]
            if not groups:
                return
            for multi in split(groups):
                try:
                    self.zookeeper.write(multi, self.zookeeper.gone(multi[-1].path))
                except Refused:
                    break  # it has changed: look again
        raise Unavailable(f"Others keep changing what is below {path}")

    def _below(self, path: str) -> tuple[Sequence[tuple[str, FileRecord]], Sequence[str]]:
        """All files and directories at or below the path, parents first."""
        top = self.find(path)
        if top is None:
            return [], []
        if isinstance(top, FileRecord):
            return [(path, top)], []
        files, directories = [], [path]  # grows while it is walked through
        for directory in directories:
            with contextlib.suppress(NotFound):
                for name, entry in self.list(directory).items():
                    full = posixpath.join(directory, name)
                    if isinstance(entry, Directory):
                        directories.append(full)
                    else:
                        files.append((full, entry))
        return files, directories

    def check_directory(self, path: str) -> Operation:
        """Part of a multi: the path is a directory."""
        return Operation("check", self.name(path), version=1)

    def create_directory(self, path: str) -> tuple[Operation, ...]:
        """Part of a multi: make a directory, whose parent must be one."""
        return Operation("create", self.name(path)), Operation("set", self.name(path), version=0)

    def create_file(self, path: str, record: FileRecord) -> tuple[Operation, ...]:
        """Part of a multi: make a file visible, and refer to its ledger. The record's `write` must be a new one."""
        return (
            Operation("create", self.name(path), record.encode()),
            Operation("create", self.reference(record), reference_text(record.generation, path)),
        )

    def remove_file(self, path: str, record: FileRecord) -> tuple[Operation, ...]:
        """Part of a multi: take away this very file, refused when it has been renamed or replaced."""
        return (
            Operation("delete", self.reference(record), version=record.generation),
            Operation("delete", self.name(path), version=0),
        )

    def has_reference(self, record: FileRecord) -> bool:
        """Whether the reference is there that making this file visible leaves behind."""
        return self.zookeeper.node(self.reference(record)) is not None

    def name(self, path: str) -> str:
        """The znode of a path."""
        return f"{self.root}/n" if path == "/" else f"{self.root}/n{encode_path(path)}"

    def ledger(self, name: str) -> str:
        """The znode of a ledger by its number as text, or "empty"."""
        return f"{self.root}/L/{name}"

    def reference(self, record: FileRecord) -> str:
        """The znode of a file's reference."""
        return f"{self.ledger(record.ledger_name)}/{record.write}"


def _entry(path: str, node: Node | None) -> FileRecord | Directory | None:
    if node is None:
        return None
    return Directory(node.mtime_ms) if node.version > 0 else FileRecord.decode(path, node.data)
