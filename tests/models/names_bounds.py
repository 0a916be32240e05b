"""How large the modelled world of names is, which rules hold in it, and how an actor writes to ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.models.names_rules import ALL, Rule
from tests.models.names_world import ANY, Actor, Entry, Ledger, Node, Op, World

Step = tuple[str, World]


@dataclass(frozen=True)
class Bounds:
    """The world at its start, and how much may go wrong in it.

    Attributes:
        rules: those that are kept.
        actors: who does what: (name, its tasks). Its name begins with its kind.
        files: paths of files that are there from the start, each in the first ledger, which is sealed.
        ledgers: how many there are at most.
        silences: how many writes get no answer.
        deaths: how often an actor dies or loses its session.
    """

    rules: frozenset[Rule] = field(default=ALL, repr=False)
    actors: tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...] = ()
    files: tuple[str, ...] = ()
    ledgers: int = 3
    silences: int = 1
    deaths: int = 1

    def start(self) -> World:
        """Give the world at its start: a directory /d, the files, and every actor with its session."""
        nodes = [Node(room, None, 0) for room in ("/L", "/del", "/sp", "/w")]
        nodes += [Node("/n", None, 1), Node("/n/d", None, 1)]
        ledgers = []
        if self.files:
            writes = tuple(f"old{number}" for number in range(len(self.files)))
            ledgers.append(Ledger("long gone", "closed", writes))
            nodes.append(Node("/L/0", ("sealed", "long gone"), 1))
            for path, write in zip(self.files, writes, strict=True):
                nodes += [Node("/n" + path, Entry(write, 0, 0), 0), Node(f"/L/0/{write}", path, 0)]
        actors = []
        for name, todo in self.actors:
            nodes += [Node(f"/w/{name}", None, 0), Node(f"/w/{name}/alive", None, 0)]
            ledger = ANY
            if name.startswith("compactor"):
                ledger = len(ledgers)
                ledgers.append(Ledger(name, "open", ()))
                nodes.append(Node(f"/L/{ledger}", ("open", name), 0))
            actors.append(Actor(name, todo=todo, process=name, ledger=ledger))
        return World(tuple(sorted(nodes, key=lambda node: node.path)), tuple(ledgers), tuple(actors))

    def op(self, rule: Rule, kind: str, path: str, data: Any = None, version: int = ANY) -> tuple[Op, ...]:
        """Give a part of a multi that is there for the sake of a rule."""
        return (Op(kind, path, data, version),) if rule in self.rules else ()

    def version(self, rule: Rule, version: int) -> int:
        """Give a version that is asked for the sake of a rule."""
        return version if rule in self.rules else ANY


def write(
    names: Bounds,
    w: World,
    i: int,
    words: str,
    happened: bool,
    done: Callable[[World], World],
    refused: Callable[[World], World],
) -> Iterator[Step]:
    """Let an actor send the multi that it has prepared, or look for the trace of one that got no answer.

    ZooKeeper carries nothing out for a session that has ended, so a multi without an answer was carried out or was
    not, and will not be later.

    Args:
        happened: whether its trace is there.
        done, refused: what the actor does then.
    """
    actor = w.actors[i]
    if not actor.at.endswith("?"):
        after = w.multi(actor.ops)
        if after is None:
            yield f"{words}: refused", refused(w)
        else:
            if actor.applied and actor.todo and actor.todo[0][0] == "delete":
                after = after._replace(wrong=f"{actor.name} deletes twice: the second file is another's")
            after = after.actor(i, applied=True)
            yield words, done(after)
        if w.silences < names.silences:
            asks = {"at": actor.at + "?"}
            if after is not None:
                carried = after.actor(i, **asks)._replace(silences=w.silences + 1)
                yield f"{words}; it is done, and the answer is lost", carried
            yield f"{words}; it is lost", w.actor(i, **asks)._replace(silences=w.silences + 1)
        return
    again = w.actor(i, at=actor.at[:-1])
    if Rule.NEVER_BLIND not in names.rules:
        yield f"{actor.name} sends it again", again
        return
    if happened:
        yield f"{actor.name} finds the trace of what it sent", done(w)
    if not happened or Rule.SYNC not in names.rules:
        yield f"{actor.name} finds no trace of what it sent, and sends it again", again


def to(i: int, at: str, **changes: Any) -> Callable[[World], World]:
    """Give what an actor does next: it goes on at another place."""
    return lambda w: w.actor(i, at=at, **changes)


def ends(i: int) -> Callable[[World], World]:
    """Give what an actor does next: it ends."""
    return lambda w: over(w, i)


def over(w: World, i: int) -> World:
    """Let an actor end."""
    name, process, ledger = w.actors[i].name, w.actors[i].process, w.actors[i].ledger
    return w.actor(i, **Actor(name, "over", process=process, ledger=ledger)._asdict())


def bytes_there(w: World, entry: Entry) -> bool:
    """Tell whether a file's bytes can be read."""
    ledger = w.ledgers[entry.ledger]
    return ledger.state != "deleted" and entry.write in ledger.writes


def origin(write_id: str) -> str:
    """Give what a compaction doesn't change in the name of a write."""
    return write_id.rstrip("~")
