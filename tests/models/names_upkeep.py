"""The upkeep of files: the sweeper frees ledgers, the compactor empties sparse ones."""

from __future__ import annotations

from collections.abc import Iterator

from tests.models.names_bounds import Bounds, Step, bytes_there, ends, over, write
from tests.models.names_client import removal
from tests.models.names_rules import Rule
from tests.models.names_world import Entry, Op, World


def sweep(names: Bounds, w: World, i: int) -> Iterator[Step]:
    """The next steps of a sweeper. It reads, and acts upon what it has read a step later."""
    actor = w.actors[i]
    match actor.at:
        case "idle":
            yield from _begin(names, w, i)
        case "free":
            yield _free(names, w, i)
        case "bytes":
            after = "idle" if Rule.NOTE_LAST not in names.rules else "note"
            yield f"the sweeper deletes the bytes of ledger {actor.seen}", _delete(w, actor.seen).actor(i, at=after)
        case "note":
            after = "bytes" if Rule.NOTE_LAST not in names.rules else "idle"
            gone = w.multi((Op("delete", f"/del/{actor.seen}"),)) or w
            yield f"the sweeper deletes the note about ledger {actor.seen}", gone.actor(i, at=after)
        case "orphan":
            yield _orphan(names, w, i)


def _begin(names: Bounds, w: World, i: int) -> Iterator[Step]:
    for note in w.below("/del"):
        first = "bytes" if Rule.NOTE_LAST in names.rules else "note"
        yield f"the sweeper finds a note {note.path}", w.actor(i, at=first, seen=int(note.path[5:]))
    for process in w.below("/w"):
        buried = w.multi((Op("delete", process.path),))
        if buried is not None:
            yield f"the sweeper buries {process.path[3:]}", buried
    for number, ledger in enumerate(w.ledgers):
        node = w.node(f"/L/{number}")
        if node is not None and node.data[0] == "sealed":
            if not w.below(node.path):
                yield f"the sweeper finds that nothing refers to ledger {number}", w.actor(i, at="free", seen=number)
        elif node is not None and w.node(f"/w/{node.data[1]}") is None:
            state = "deleted" if ledger.state == "deleted" else "closed"
            sealed = w.ledger(number, state=state).multi((Op("set", node.path, ("sealed", node.data[1])),))
            assert sealed is not None
            yield f"the sweeper closes ledger {number} of {node.data[1]}, which is dead", sealed
        if ledger.state != "deleted" and _may_be_orphan(names, w, number):
            yield f"the sweeper begins to ask about ledger {number}", w.actor(i, at="orphan", seen=number)


def _free(names: Bounds, w: World, i: int) -> Step:
    ledger = w.actors[i].seen
    words = f"the sweeper frees ledger {ledger}"
    references: tuple[Op, ...] = ()
    if Rule.FREE_UNREFERENCED not in names.rules:
        references = tuple(Op("delete", node.path) for node in w.below(f"/L/{ledger}"))
    note = names.op(Rule.FREE_NOTES, "create", f"/del/{ledger}")
    freed = w.multi((*references, Op("delete", f"/L/{ledger}"), *note))
    if freed is None:
        return f"{words}: refused", w.actor(i, at="idle", seen=None)
    return words, freed.actor(i, at="bytes" if Rule.NOTE_LAST in names.rules else "note")


def _is_buried(w: World, ledger: int) -> bool:
    return w.node(f"/w/{w.ledgers[ledger].owner}") is None


def _is_unregistered(w: World, ledger: int) -> bool:
    return w.node(f"/L/{ledger}") is None and w.node(f"/del/{ledger}") is None


def _may_be_orphan(names: Bounds, w: World, ledger: int) -> bool:
    """The first of two questions."""
    if Rule.ORPHAN_BURIED not in names.rules:
        return _is_unregistered(w, ledger)
    return _is_buried(w, ledger) if Rule.ORPHAN_ORDER in names.rules else _is_unregistered(w, ledger)


def _orphan(names: Bounds, w: World, i: int) -> Step:
    """The second question, and what follows."""
    ledger = w.actors[i].seen
    idle = w.actor(i, at="idle", seen=None)
    if Rule.ORPHAN_BURIED not in names.rules:
        sure = True
    else:
        sure = _is_unregistered(w, ledger) if Rule.ORPHAN_ORDER in names.rules else _is_buried(w, ledger)
    if not sure:
        return f"the sweeper leaves ledger {ledger} alone", idle
    return f"the sweeper deletes ledger {ledger}, an orphan", _delete(idle, ledger)


def _delete(w: World, ledger: int) -> World:
    return w.ledger(ledger, state="deleted", writes=())


def compact(names: Bounds, w: World, i: int) -> Iterator[Step]:
    """The next steps of a compactor: look, copy, swap."""
    actor = w.actors[i]
    match actor.at.rstrip("?"):
        case "idle":
            found = False
            for path, entry in _to_move(names, w, actor.ledger):
                found = True
                yield f"the compactor looks at {path}", w.actor(i, at="copy", seen=(path, entry))
            if not found and actor.todo:
                yield "the compactor finds nothing to do", w.actor(i, todo=())
        case "copy":
            yield _copy(names, w, i)
        case "swap":
            path, entry = actor.seen
            happened = w.node(f"/L/{actor.ledger}/{entry.write}~") is not None
            words = f"the compactor swaps {path} to ledger {actor.ledger}"
            yield from write(names, w, i, words, happened, ends(i), ends(i))


def _to_move(names: Bounds, w: World, own: int) -> Iterator[tuple[str, Entry]]:
    for ledger in w.below("/L"):
        if ledger.data[0] != "sealed" or ledger.path == f"/L/{own}":
            continue
        for reference in w.below(ledger.path):
            write_id = reference.path.rsplit("/", 1)[1]
            if write_id.startswith("s-"):
                break
            entry = w.file(reference.data)
            if entry is not None and entry.write == write_id and not _asked_for(names, w, write_id):
                yield reference.data, entry


def _asked_for(names: Bounds, w: World, write_id: str) -> bool:
    """Tell whether a writer may still ask what became of it: the grace time is longer than any writer's patience."""
    if Rule.SWAP_GRACE not in names.rules:
        return False
    asking = (actor.seen for actor in w.actors if actor.at.endswith("?"))
    return any(write_id == (seen.write if isinstance(seen, Entry) else seen) for seen in asking)


def _copy(names: Bounds, w: World, i: int) -> Step:
    actor = w.actors[i]
    path, entry = actor.seen
    if not bytes_there(w, entry):
        return f"the compactor finds {path} deleted", over(w, i)
    new = Entry(entry.write + "~", 0, actor.ledger)
    copied = w.ledger(actor.ledger, writes=(*w.ledgers[actor.ledger].writes, new.write))
    ops = (
        *removal(names, path, entry, Rule.SWAP_RELEASES, Rule.SWAP_GENERATION),
        Op("create", "/n" + path, new),
        *names.op(Rule.SWAP_REFERS, "create", f"/L/{new.ledger}/{new.write}", path),
    )
    return f"the compactor copies {path} to ledger {actor.ledger}", copied.actor(i, at="swap", ops=ops)
