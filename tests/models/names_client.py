"""The steps of a process with files: write, rename, delete, make and remove directories, read."""

from __future__ import annotations

from collections.abc import Iterator

from tests.models.names_bounds import Bounds, Step, bytes_there, origin, over, to, write
from tests.models.names_rules import Rule
from tests.models.names_world import ANY, Entry, Ledger, Op, World, parent


def steps(names: Bounds, w: World, i: int) -> Iterator[Step]:
    """The next steps of a client."""
    actor = w.actors[i]
    match actor.at.rstrip("?"):
        case "idle":
            yield from _next_task(names, w, i)
        case "new":
            yield from _new_ledger(names, w, i)
        case "register":
            yield from _register(names, w, i)
        case "append":
            yield from _append(names, w, i)
        case "publish":
            yield from _publish(names, w, i)
        case "bytes":
            # Only without ACKNOWLEDGED: the bytes come after the name.
            yield f"the bytes of {actor.seen} arrive", _answer(_store(w, i), i, "done")
        case "look":
            yield _look(names, w, i)
        case "send":
            yield from _send(names, w, i)
        case "seal":
            yield _seal(w, i)
        case "read":
            yield _read(names, w, i)


def _next_task(names: Bounds, w: World, i: int) -> Iterator[Step]:
    actor = w.actors[i]
    name = actor.name
    if actor.ledger != ANY and (not actor.todo or w.ledgers[actor.ledger].owner != actor.process):
        yield f"{name} closes ledger {actor.ledger}", _closed(w.actor(i, at="seal"), actor.ledger)
    elif not actor.todo:
        yield f"{name} is done", over(w, i)
    elif actor.todo[0][0] == "write":
        yield f"{name} writes {actor.todo[0][1]}", w.actor(i, at="new" if actor.ledger == ANY else "append")
    elif actor.todo[0][0] == "read":
        entry = w.file(actor.todo[0][1])
        opened = over(w, i) if entry is None else w.actor(i, at="read", seen=entry)
        yield f"{name} opens {actor.todo[0][1]}", opened
    else:
        yield _look(names, w, i)


def _answer(w: World, i: int, answer: str) -> World:
    """Tell the caller, who believes it, and go on with the next task."""
    actor = w.actors[i]
    task = " ".join(str(word) for word in actor.todo[0])
    if (answer == "done") != actor.applied:
        truth = "it was done" if actor.applied else "it was not done"
        w = w._replace(wrong=f"{actor.name} is told of `{task}`: {answer}, and {truth}")
    return w.actor(i, at="idle", todo=actor.todo[1:], ops=(), seen=None, applied=False)


# ---- writing


def _new_ledger(names: Bounds, w: World, i: int) -> Iterator[Step]:
    actor = w.actors[i]
    number = len(w.ledgers)
    if number == names.ledgers:
        return
    made = w._replace(ledgers=(*w.ledgers, Ledger(actor.process, "open", ())))
    ops = (
        *names.op(Rule.REGISTER_CHECKS_WRITER, "check", f"/w/{actor.process}"),
        Op("create", f"/L/{number}", ("open", actor.process)),
    )
    yield f"{actor.name} makes ledger {number}", made.actor(i, at="register", ledger=number, ops=ops)


def _register(names: Bounds, w: World, i: int) -> Iterator[Step]:
    actor = w.actors[i]
    number = actor.ledger
    words = f"{actor.name} registers ledger {number}"

    def taken_for_dead(w: World) -> World:
        w = w.ledger(number, state="deleted", writes=())
        return _new_session(w, i).actor(i, at="new", ledger=ANY, ops=())

    registered = to(i, "append", ops=(), applied=False)
    yield from write(names, w, i, words, w.node(f"/L/{number}") is not None, registered, taken_for_dead)


def _append(names: Bounds, w: World, i: int) -> Iterator[Step]:
    actor = w.actors[i]
    if w.ledgers[actor.ledger].state == "closed":
        yield f"{actor.name} can't append to ledger {actor.ledger}, and gives it up", w.actor(i, at="seal")
        return
    seen = f"{actor.name}-{actor.written + 1}"
    w = w.actor(i, at="publish", seen=seen, written=actor.written + 1)
    w = w.actor(i, ops=_publication(names, w, i, None))
    yield f"{actor.name} appends {seen} to ledger {actor.ledger}", _store(w, i) if _waits(names) else w


def _waits(names: Bounds) -> bool:
    return Rule.ACKNOWLEDGED in names.rules


def _store(w: World, i: int) -> World:
    """Take the bytes in. A deleted ledger takes them too, and no reader will ever find them."""
    actor = w.actors[i]
    ledger = w.ledgers[actor.ledger]
    return w if ledger.state == "deleted" else w.ledger(actor.ledger, writes=(*ledger.writes, actor.seen))


def _publication(names: Bounds, w: World, i: int, target: Entry | None) -> tuple[Op, ...]:
    actor = w.actors[i]
    path = actor.todo[0][1]
    ops = names.op(Rule.PUBLISH_CHECKS_PARENT, "check", "/n" + parent(path), version=1)
    if target is not None:
        ops += removal(names, path, target, Rule.OVERWRITE_RELEASES, Rule.OVERWRITE_GENERATION)
    ops += (Op("create", "/n" + path, Entry(actor.seen, 0, actor.ledger)),)
    return ops + names.op(Rule.PUBLISH_REFERS, "create", f"/L/{actor.ledger}/{actor.seen}", path)


def removal(names: Bounds, path: str, file: Entry, releases: Rule, generation: Rule) -> tuple[Op, ...]:
    """Give the part of a multi that takes a file away."""
    version = names.version(generation, file.generation)
    reference = names.op(releases, "delete", f"/L/{file.ledger}/{file.write}", version=version)
    return (*reference, Op("delete", "/n" + path, version=names.version(Rule.NAME_VERSION, 0)))


def _publish(names: Bounds, w: World, i: int) -> Iterator[Step]:
    actor = w.actors[i]
    path = actor.todo[0][1]
    if Rule.PUBLISH_TRACE in names.rules:
        happened = w.node(f"/L/{actor.ledger}/{actor.seen}") is not None
    else:
        happened = w.file(path) is not None

    def done(w: World) -> World:
        return _answer(w, i, "done") if _waits(names) else w.actor(i, at="bytes")

    yield from write(names, w, i, f"{actor.name} publishes {path} as {actor.seen}", happened, done, to(i, "look"))


# ---- reading the tree, to act upon it


def _look(names: Bounds, w: World, i: int) -> Step:
    """Read what there is, and prepare a multi that is refused where it has changed, or answer at once."""
    actor = w.actors[i]
    kind, path, *rest = actor.todo[0]
    words = f"{actor.name} looks at {path}"
    here, entry = w.node("/n" + path), w.file(path)
    if kind == "write":
        if here is not None and (entry is None or "overwrite" not in rest):
            return f"{words}: it exists", _answer(w, i, "there is such a file")
        if not _is_directory(w, parent(path)):
            return f"{words}: there is no such directory", _answer(w, i, "there is no directory")
        if w.node(f"/L/{actor.ledger}") is None:
            return f"{words}: ledger {actor.ledger} was freed", w.actor(i, at="new", ledger=ANY, ops=())
        return words, w.actor(i, at="publish", ops=_publication(names, w, i, entry))
    ops: tuple[Op, ...]
    if kind == "mkdir":
        if here is not None or not _is_directory(w, parent(path)):
            return f"{words}: it can't be made", _answer(w, i, "it can't be made")
        check = names.op(Rule.MKDIR_CHECKS_PARENT, "check", "/n" + parent(path), version=1)
        ops = (*check, Op("create", "/n" + path), Op("set", "/n" + path, None, 0))
    elif kind == "rmdir":
        if not _is_directory(w, path) or w.below("/n" + path):
            return f"{words}: there is no empty directory", _answer(w, i, "there is none")
        ops = (Op("delete", "/n" + path, version=names.version(Rule.RMDIR_VERSION, 1)),)
    elif entry is None:
        return f"{words}: there is no file", _answer(w, i, "there is none")
    elif kind == "delete":
        ops = removal(names, path, entry, Rule.DELETE_RELEASES, Rule.DELETE_GENERATION)
    else:
        target = rest[0]
        if not _is_directory(w, parent(target)):
            return f"{words}: there is no such directory", _answer(w, i, "there is no directory")
        if w.node("/n" + target) is not None and "overwrite" not in rest:
            return f"{words}: {target} exists", _answer(w, i, "there is such a file")
        ops = _move(names, w, path, entry, target)
    return words, w.actor(i, at="send", ops=ops, seen=entry)


def _move(names: Bounds, w: World, path: str, entry: Entry, target: str) -> tuple[Op, ...]:
    ops = names.op(Rule.RENAME_CHECKS_PARENT, "check", "/n" + parent(target), version=1)
    old = w.file(target)
    if old is not None:
        ops += removal(names, target, old, Rule.OVERWRITE_RELEASES, Rule.OVERWRITE_GENERATION)
    version = names.version(Rule.RENAME_GENERATION, entry.generation)
    return (
        *ops,
        Op("set", f"/L/{entry.ledger}/{entry.write}", target, version),
        Op("delete", "/n" + path, version=names.version(Rule.NAME_VERSION, 0)),
        Op("create", "/n" + target, entry._replace(generation=entry.generation + 1)),
    )


def _is_directory(w: World, path: str) -> bool:
    node = w.node("/n" + path)
    return node is not None and node.version == 1 and node.data is None


def _send(names: Bounds, w: World, i: int) -> Iterator[Step]:
    actor = w.actors[i]
    kind, path, *rest = actor.todo[0]
    if kind == "rename":
        happened = _has_moved(names, w, actor.seen, rest[0])
    elif kind == "delete":
        happened = _is_deleted(names, w, actor.seen, path)
    else:
        happened = _is_directory(w, path) == (kind == "mkdir")
    words = f"{actor.name}: {kind} {' to '.join([path, *rest])}"
    yield from write(names, w, i, words, happened, lambda w: _answer(w, i, "done"), to(i, "look"))


def _has_moved(names: Bounds, w: World, source: Entry, target: str) -> bool:
    there = w.file(target)
    if Rule.RENAME_TRACE not in names.rules:
        return there is not None
    reference = w.node(f"/L/{source.ledger}/{source.write}")
    if reference is not None:
        return reference.version > source.generation and reference.data == target
    return there is not None and origin(there.write) == origin(source.write)


def _is_deleted(names: Bounds, w: World, file: Entry, path: str) -> bool:
    there = w.file(path)
    if Rule.DELETE_TRACE not in names.rules:
        return there is None
    gone = w.node(f"/L/{file.ledger}/{file.write}") is None
    return gone and not (there is not None and origin(there.write) == origin(file.write))


# ---- the rest


def _seal(w: World, i: int) -> Step:
    """Say that the ledger gets no further entries. Where it was freed already, that does no harm."""
    actor = w.actors[i]
    node = w.node(f"/L/{actor.ledger}")
    if node is not None:
        sealed = w.multi((Op("set", node.path, ("sealed", node.data[1])),))
        assert sealed is not None
        w = sealed
    return f"{actor.name} marks ledger {actor.ledger} sealed", w.actor(i, at="idle", ledger=ANY)


def _closed(w: World, ledger: int) -> World:
    return w.ledger(ledger, state="closed") if w.ledgers[ledger].state == "open" else w


def _read(names: Bounds, w: World, i: int) -> Step:
    actor = w.actors[i]
    path = actor.todo[0][1]
    if bytes_there(w, actor.seen):
        return f"{actor.name} has read {path}", over(w, i)
    now = w.file(path)
    if now is not None and origin(now.write) == origin(actor.seen.write):
        if Rule.READ_AGAIN in names.rules:
            return f"{actor.name} misses the bytes, and asks the name again", w.actor(i, seen=now)
        lost = w._replace(
            wrong=f"{actor.name} says that the bytes of {path} are lost, and they are in ledger {now.ledger}"
        )
        return f"{actor.name} misses the bytes", lost
    return f"{actor.name} hears that {path} was deleted, moved or replaced", over(w, i)


def _new_session(w: World, i: int) -> World:
    """Begin a session, with a new writer identity."""
    process = w.actors[i].process + "'"
    begun = w.multi((Op("create", f"/w/{process}"), Op("create", f"/w/{process}/alive")))
    assert begun is not None
    return begun.actor(i, process=process)


def lose_session(w: World, i: int) -> World:
    """The session ends, and with it what is ephemeral; the process goes on with another."""
    return _new_session(without_ephemerals(w, i), i)


def without_ephemerals(w: World, i: int) -> World:
    """Delete what lives as long as an actor's session."""
    actor = w.actors[i]
    gone = (f"/w/{actor.process}/alive", f"/build-{actor.name}")
    return w._replace(nodes=tuple(node for node in w.nodes if not node.path.endswith(gone)))
