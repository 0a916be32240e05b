"""Deleting a savepoint in ZooKeeper, step by step. Each step is one multi, or some of the same kind.

1. set(/sp/NAME, deleting, its version), create(delete-ID), delete(build-ID). A crash before: the savepoint is whole.
   After: it can't be restored any more and nobody can add references; whoever deletes it next goes on from here.
2. After a `sync`, each ledger is asked for s-NAME: check(delete-ID), delete(/L/id/s-NAME). A crash leaves fewer
   references, and still the znode that says so.
3. check(delete-ID), delete(files-…); at last delete(delete-ID), delete(/sp/NAME). A crash before the last: no reference
   is left, the name is still taken. After: nothing is left.

Ledgers without any other reference are freed by the sweeper, after its grace time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from statestore.bk.names import EMPTY, Names
from statestore.bk.zookeeper import Operation, Refused, split
from statestore.errors import InvalidInput, NotFound, Unavailable
from statestore.savepoints.manifest import Savepoint
from statestore.savepoints.store import BUILD, DELETE, children_of, path_of, reference_of

_ATTEMPTS = 30


def delete(names: Names, name: str, ready: bool = True) -> None:
    """Delete a savepoint in whatever state; what somebody began to delete is finished.

    Args:
        ready: whether it may be one that is ready.

    Raises:
        NotFound: there is none of that name.
        InvalidInput: it is ready and must not be.
    """
    token = _mark(names, name, ready)
    names.zookeeper.sync()  # a reference made a moment ago must be seen
    for step in (_release, _remove):
        for _ in range(_ATTEMPTS):
            if names.zookeeper.node(token) is None:
                return  # somebody else has finished it
            if step(names, name, token):
                break
        else:
            raise Unavailable(f"Others keep changing savepoint {name}: delete it again")


def _mark(names: Names, name: str, ready: bool) -> str:
    path = path_of(names, name)
    for _ in range(_ATTEMPTS):
        node = names.zookeeper.node(path)
        if node is None:
            raise NotFound(f"There is no savepoint {name} in this tree")
        savepoint = Savepoint.decode(name, node.data)
        if savepoint.state == "ready" and not ready:
            raise InvalidInput(f"There is a savepoint {name} in this tree already")
        tokens = children_of(names, name, DELETE)
        if tokens:
            return tokens[0]
        token = f"{path}/{DELETE}{uuid.uuid4().hex}"
        change = [
            Operation("set", path, replace(savepoint, state="deleting").encode(), node.version),
            Operation("create", token),
            *(Operation("delete", build) for build in children_of(names, name, BUILD)),
        ]
        if _done(names, change, lambda token=token: names.zookeeper.node(token) is not None):  # type: ignore[misc]
            return token
    raise Unavailable(f"Others keep changing savepoint {name}: delete it again")


def _release(names: Names, name: str, token: str) -> bool:
    """Delete its references; True when there are none."""
    ledgers = names.zookeeper.children(f"{names.root}/L") or []
    paths = [reference_of(names, name, ledger) for ledger in ledgers if ledger != EMPTY]
    held = [path for path, there in zip(paths, names.zookeeper.exist(paths), strict=True) if there]
    if held:
        _delete_all(names, held, token)
    return not held


def _remove(names: Names, name: str, token: str) -> bool:
    """Delete its znodes; True when all are gone."""
    chunks = [path for path in children_of(names, name) if path != token]
    if not _delete_all(names, chunks, token):
        return False
    last = [Operation("delete", token), Operation("delete", path_of(names, name))]
    return _done(names, last, names.zookeeper.gone(token))


def _delete_all(names: Names, paths: list[str], token: str) -> bool:
    for multi in split([Operation("delete", path)] for path in paths):
        if not _done(names, [Operation("check", token), *multi], names.zookeeper.gone(multi[-1].path)):
            return False
    return True


def _done(names: Names, operations: list[Operation], happened: Callable[[], bool]) -> bool:
    """Whether it was carried out; False when somebody else was quicker."""
    try:
        names.zookeeper.write(operations, happened)
    except Refused:
        return False
    return True
