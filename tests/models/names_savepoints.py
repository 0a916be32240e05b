"""Savepoints: their makers hold ledgers by references of their own, their deleters let go of them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.models.names_bounds import Bounds, Step, ends, over, to, write
from tests.models.names_rules import Rule
from tests.models.names_world import Entry, Op, World

SAVEPOINT = "/sp/s"


def make(names: Bounds, w: World, i: int) -> Iterator[Step]:
    """The next steps of a savepoint's maker: begin, look, hold, make ready."""
    actor = w.actors[i]
    token = f"{SAVEPOINT}/build-{actor.name}"
    match actor.at.rstrip("?"):
        case "idle":
            ops = (Op("create", SAVEPOINT, ("building", ())), Op("create", token))
            yield f"{actor.name} wants to make the savepoint", w.actor(i, at="begin", ops=ops)
        case "begin":
            begun = w.node(token) is not None
            yield from write(names, w, i, f"{actor.name} begins", begun, to(i, "look", ops=()), ends(i))
        case "look":
            files = tuple(node.data for node in w.nodes if isinstance(node.data, Entry))
            yield f"{actor.name} looks at the files", _hold(names, w.actor(i, seen=(files, ())), i, token)
        case "hold":
            reference = actor.ops[-1].path
            held = w.node(reference) is not None

            def go_on(w: World) -> World:
                files, before = actor.seen
                return _hold(names, w.actor(i, seen=(files, (*before, reference))), i, token)

            yield from write(names, w, i, f"{actor.name} makes {reference}", held, go_on, ends(i))
        case "ready":
            node = w.node(SAVEPOINT)
            is_ready = node is not None and node.data == actor.ops[-1].data
            yield from write(names, w, i, f"{actor.name} makes the savepoint ready", is_ready, ends(i), ends(i))


def _hold(names: Bounds, w: World, i: int, token: str) -> World:
    """Prepare the next hold, or the end."""
    files, held = w.actors[i].seen
    wanted = sorted({f"/L/{entry.ledger}/s-s" for entry in files} - {*held})
    if wanted and Rule.HOLD_BEFORE_READY in names.rules:
        check = names.op(Rule.HOLD_CHECKS_BUILD, "check", token)
        return w.actor(i, at="hold", ops=(*check, Op("create", wanted[0])))
    end = names.op(Rule.READY_CHECKS_BUILD, "delete", token)
    ops = (*end, Op("set", SAVEPOINT, ("ready", files), names.version(Rule.READY_VERSION, 0)))
    return w.actor(i, at="ready", ops=ops)


def delete(names: Bounds, w: World, i: int) -> Iterator[Step]:
    """The next steps of a deletion: mark, free each ledger, remove the name."""
    actor = w.actors[i]
    match actor.at.rstrip("?"):
        case "idle":
            yield _mark(names, w, i)
        case "mark":
            marked = w.node(actor.seen) is not None
            go_on = to(i, _first(names), ops=())
            yield from write(names, w, i, f"{actor.name} marks the savepoint", marked, go_on, to(i, "idle"))
        case "look":
            yield _look(names, w, i)
        case "release":
            reference = actor.ops[-1].path
            gone, back = w.node(reference) is None, to(i, "look", ops=())
            yield from write(names, w, i, f"{actor.name} deletes {reference}", gone, back, back)
        case "remove" if not actor.ops:
            ops = (Op("delete", actor.seen), Op("delete", SAVEPOINT))
            yield f"{actor.name} is about to remove the name", w.actor(i, ops=ops)
        case "remove":
            after = ends(i) if _first(names) == "look" else to(i, "look", ops=())
            removed = w.node(actor.seen) is None
            yield from write(names, w, i, f"{actor.name} removes the name", removed, after, after)


def _first(names: Bounds) -> str:
    return "look" if Rule.RELEASE_FIRST in names.rules else "remove"


def _mark(names: Bounds, w: World, i: int) -> Step:
    actor = w.actors[i]
    node = w.node(SAVEPOINT)
    if node is None:
        return f"{actor.name} finds no savepoint", over(w, i)
    children = [child.path for child in w.below(SAVEPOINT)]
    for token in children:
        if "/delete-" in token:
            return f"{actor.name} goes on with a deletion", w.actor(i, at=_first(names), seen=token)
    token = f"{SAVEPOINT}/delete-{actor.name}"
    ops = (
        Op("set", SAVEPOINT, ("deleting", ()), node.version),
        Op("create", token),
        *(Op("delete", build) for build in children),
    )
    return f"{actor.name} wants to delete the savepoint", w.actor(i, at="mark", ops=ops, seen=token)


def _look(names: Bounds, w: World, i: int) -> Step:
    actor = w.actors[i]
    if w.node(actor.seen) is None and Rule.RELEASE_FIRST in names.rules:
        return f"{actor.name} sees that another has finished it", over(w, i)
    held = [node.path for node in w.nodes if node.path.startswith("/L/") and node.path.endswith("/s-s")]
    if held:
        check = names.op(Rule.RELEASE_CHECKS_TOKEN, "check", actor.seen) if Rule.RELEASE_FIRST in names.rules else ()
        return f"{actor.name} finds {held[0]}", w.actor(i, at="release", ops=(*check, Op("delete", held[0])))
    if Rule.RELEASE_FIRST in names.rules:
        return f"{actor.name} finds nothing held", w.actor(i, at="remove", ops=())
    return f"{actor.name} finds nothing held", over(w, i)
