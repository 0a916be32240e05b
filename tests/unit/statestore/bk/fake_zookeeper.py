"""A ZooKeeper in memory, shaped like `statestore.bk.zookeeper.ZooKeeper`, whose client can die at each multi."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence

from statestore.bk.zookeeper import Node, Operation, Refused, ZooKeeper


class Killed(BaseException):
    """The process has died."""


class FakeZooKeeper(ZooKeeper):
    """One session; `end_session` begins another.

    Attributes:
        tree: znodes by path: data and version.
        dies: the number of the multi, from 0, at which its client dies, and whether "before" or "after" it. Every
            later call dies too.
        before_write: called before each multi with its number.
        writes: the multis so far.
    """

    def __init__(self) -> None:
        self.tree: dict[str, tuple[bytes, int]] = {"/": (b"", 0)}
        self.ephemeral: set[str] = set()
        self.dies: tuple[int, str] | None = None
        self.dead = False
        self.before_write: Callable[[int], None] = lambda _: None
        self.writes = 0

    def end_session(self) -> None:
        for path in self.ephemeral:
            self.tree.pop(path, None)
        self.ephemeral, self.dead, self.dies = set(), False, None

    def make(self, *paths: str) -> None:
        for path in paths:
            for end in [at for at, letter in enumerate(path) if letter == "/" and at] + [len(path)]:
                self.tree.setdefault(path[:end], (b"", 0))

    def close(self) -> None:
        pass

    def nodes(self, paths: Iterable[str]) -> Iterator[Node | None]:
        for path in paths:
            found = self.tree.get(path)
            yield None if found is None else Node(*found, 1_000, len(self.children(path) or []))

    def exist(self, paths: Iterable[str]) -> Iterator[bool]:
        return (path in self.tree for path in paths)

    def children(self, path: str) -> list[str] | None:
        if path not in self.tree:
            return None
        return sorted(posixpath.basename(other) for other in self.tree if posixpath.dirname(other) == path != other)

    def children_of(self, paths: Iterable[str]) -> Iterator[list[str] | None]:
        return (self.children(path) for path in paths)

    def sync(self) -> None:
        pass

    def write(self, operations: Sequence[Operation], happened: Callable[[], bool]) -> None:
        number, self.writes = self.writes, self.writes + 1
        self.before_write(number)
        self._live(number, "before")
        tree = dict(self.tree)
        for position, operation in enumerate(operations):
            if why := _apply(tree, operation):
                raise Refused(position, operation, why)
        assert not happened(), "the trace shows what has not been written"
        self.tree = tree
        assert happened(), "the trace doesn't show what has just been written"
        self.ephemeral |= {operation.path for operation in operations if operation.ephemeral}
        self._live(number, "after")

    def _live(self, number: int, moment: str) -> None:
        self.dead = self.dead or self.dies == (number, moment)
        if self.dead:
            raise Killed


def _apply(tree: dict[str, tuple[bytes, int]], operation: Operation) -> str:
    path = operation.path
    if operation.kind == "create":
        if path in tree:
            return "NodeExistsError"
        if posixpath.dirname(path) not in tree:
            return "NoNodeError"
        tree[path] = (operation.data, 0)
        return ""
    if path not in tree:
        return "NoNodeError"
    version = tree[path][1]
    if operation.version not in (-1, version):
        return "BadVersionError"
    if operation.kind == "set":
        tree[path] = (operation.data, version + 1)
    elif operation.kind == "delete":
        if any(posixpath.dirname(other) == path for other in tree):
            return "NotEmptyError"
        del tree[path]
    return ""
