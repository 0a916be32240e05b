"""The world of the model of the names: a tree of znodes with multis, and ledgers.

A multi is carried out whole or not at all. A znode has a version, which counts its changes, and can't be deleted
while it has children. A ledger's id is never used twice; an append to a ledger that was deleted is acknowledged all
the same [m], and its bytes are nowhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

ANY = -1


class Node(NamedTuple):
    """A znode: where it is, what it says, and how often that was changed."""

    path: str
    data: Any
    version: int


class Entry(NamedTuple):
    """The content of a file's znode: which bytes, how often it was renamed, and where the bytes are."""

    write: str
    generation: int
    ledger: int


class Op(NamedTuple):
    """A part of a multi: check, create, set or delete; `version` ANY asks for none."""

    kind: str
    path: str
    data: Any = None
    version: int = ANY


class Ledger(NamedTuple):
    """A ledger in BookKeeper: who made it, open | closed | deleted, and the writes whose bytes are in it."""

    owner: str
    state: str
    writes: tuple[str, ...]


class Actor(NamedTuple):
    """A process that does one thing after the other.

    Attributes:
        name: of what kind, and which of them.
        at: where it is in what it does.
        todo: the tasks still to be done: (kind, path, …).
        ops: the multi under way.
        seen: what it has read, and acts upon.
        process: the writer identity of its session.
        ledger: the pack it writes to, or ANY.
        written: how many writes it has begun.
        applied: whether the multi under way was carried out. The actor doesn't know.
    """

    name: str
    at: str = "idle"
    todo: tuple[tuple[Any, ...], ...] = ()
    ops: tuple[Op, ...] = ()
    seen: Any = None
    process: str = ""
    ledger: int = ANY
    written: int = 0
    applied: bool = False


class World(NamedTuple):
    """A state.

    Attributes:
        nodes: the tree, by path.
        ledgers: by id.
        actors: see there.
        silences: how often a write got no answer; bounded.
        deaths: how many sessions were lost or actors died; bounded.
        wrong: what the last step did that must never be done.
    """

    nodes: tuple[Node, ...]
    ledgers: tuple[Ledger, ...]
    actors: tuple[Actor, ...]
    silences: int = 0
    deaths: int = 0
    wrong: str = ""

    def node(self, path: str) -> Node | None:
        """Read a znode."""
        for node in self.nodes:
            if node.path == path:
                return node
        return None

    def below(self, path: str) -> list[Node]:
        """Read a znode's children."""
        depth = path.count("/") + 1
        return [node for node in self.nodes if node.path.startswith(path + "/") and node.path.count("/") == depth]

    def file(self, path: str) -> Entry | None:
        """Read a file's entry; None where there is no file."""
        node = self.node("/n" + path)
        return node.data if node is not None and isinstance(node.data, Entry) else None

    def actor(self, number: int, **changes: Any) -> World:
        """Change one actor."""
        changed = self.actors[number]._replace(**changes)
        return self._replace(actors=(*self.actors[:number], changed, *self.actors[number + 1 :]))

    def ledger(self, number: int, **changes: Any) -> World:
        """Change one ledger."""
        changed = self.ledgers[number]._replace(**changes)
        return self._replace(ledgers=(*self.ledgers[:number], changed, *self.ledgers[number + 1 :]))

    def multi(self, ops: tuple[Op, ...]) -> World | None:
        """Carry out all of `ops`, or none: None."""
        nodes = {node.path: node for node in self.nodes}
        for kind, path, data, version in ops:
            old = nodes.get(path)
            if kind == "create":
                if old is not None or parent(path) not in nodes:
                    return None
                nodes[path] = Node(path, data, 0)
                continue
            if old is None or version not in (ANY, old.version):
                return None
            if kind == "set":
                nodes[path] = Node(path, data, old.version + 1)
            elif kind == "delete":
                below = path + "/"
                if any(other.startswith(below) for other in nodes):
                    return None
                del nodes[path]
        return self._replace(nodes=tuple(sorted(nodes.values(), key=_path)))


def _path(node: Node) -> str:
    return node.path


def parent(path: str) -> str:
    """Give the path above; the rooms /n, /L, /w, /del and /sp have the root, which is the empty path."""
    return path[: path.rindex("/")]
