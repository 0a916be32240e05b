"""Making a savepoint in ZooKeeper, step by step. Each step is one multi, or some of the same kind.

1. `begin`: create(/sp/NAME, building), create(build-ID). A crash before: nothing is there. After: the name is taken,
   and nothing is held.
2. `hold`, for the ledgers of the cut: check(build-ID), create(/L/id/s-NAME). That is done only where the ledger's znode
   is still there, and a sweeper deletes that before the ledger's bytes, and not while it has a child: so what is held
   can be read. A ledger freed before that: the maker takes a newer cut. A crash leaves references of a savepoint that
   is not ready; `deleting` finds them, since it asks every ledger.
3. `finish`: check(build-ID), create(files-…). A crash leaves the same and some chunks.
4. `finish`: set(/sp/NAME, ready), delete(build-ID). A crash before: not ready, nobody restores it. After: all that it
   needs is held, and nothing can be added any more.

`build-ID` is ephemeral: it ends with the maker's session, and all steps that come later are refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from statestore.bk.names import Names
from statestore.bk.zookeeper import Operation, Refused, split
from statestore.errors import InvalidInput, Unavailable
from statestore.savepoints.manifest import Cut, Savepoint, pack
from statestore.savepoints.store import BUILD, chunk_of, path_of, reference_of


class LedgerGone(Exception):
    """A ledger of the cut was freed before it was held: a newer cut is needed."""


def begin(names: Names, name: str, source: str, now_ms: int) -> Build:
    """Take the name, for a savepoint of the checkpoint at `source`.

    Raises:
        InvalidInput: it is no name, or there is such a savepoint.
    """
    path = path_of(names, name)
    savepoint = Savepoint(name, "building", source, now_ms)
    token = f"{path}/{BUILD}{uuid.uuid4().hex}"
    create = [Operation("create", path, savepoint.encode()), Operation("create", token, ephemeral=True)]
    try:
        names.zookeeper.write(create, names.zookeeper.there(token))
    except Refused as refused:
        if refused.why != "NodeExistsError":
            raise
        raise InvalidInput(
            f"There is a savepoint {name} in this tree already: take another name, or delete it first"
        ) from refused
    return Build(names, savepoint, token)


@dataclass(frozen=True)
class Build:
    """A savepoint that is being made. Each step is refused once its maker's session has ended, or it is being deleted.

    Attributes:
        names: the tree.
        savepoint: as it was begun.
        token: the znode that says that it is being made.
    """

    names: Names
    savepoint: Savepoint
    token: str

    def hold(self, ledgers: Iterable[int]) -> None:
        """Refer to each of these ledgers.

        Raises:
            LedgerGone: one was freed before that.
            Unavailable: the build has ended.
        """
        paths = (reference_of(self.names, self.savepoint.name, ledger) for ledger in ledgers)
        for multi in split([Operation("create", path)] for path in paths):
            self._write(multi)

    def finish(self, cut: Cut) -> Savepoint:
        """Write the list of files, and make the savepoint ready.

        Raises:
            Unavailable: the build has ended.
        """
        name = self.savepoint.name
        chunks, crc32c = pack(cut.files)
        paths = (chunk_of(self.names, name, number) for number in range(len(chunks)))
        for multi in split([Operation("create", path, data)] for path, data in zip(paths, chunks, strict=True)):
            self._write(multi)
        ready = self.savepoint.ready(cut, chunks, crc32c)
        path = path_of(self.names, name)
        last = [Operation("delete", self.token), Operation("set", path, ready.encode(), 0)]
        try:
            self.names.zookeeper.write(last, lambda: self._is(path, ready))
        except Refused as refused:
            raise self._ended(refused) from refused
        return ready

    def _write(self, operations: list[Operation]) -> None:
        zookeeper = self.names.zookeeper
        try:
            zookeeper.write([Operation("check", self.token), *operations], zookeeper.there(operations[-1].path))
        except Refused as refused:
            if refused.position > 0 and refused.why == "NoNodeError":
                raise LedgerGone(operations[refused.position - 1].path) from refused
            raise self._ended(refused) from refused

    def _is(self, path: str, ready: Savepoint) -> bool:
        node = self.names.zookeeper.node(path)
        return node is not None and node.data == ready.encode()

    def _ended(self, refused: Refused) -> Unavailable:
        return Unavailable(
            f"Savepoint {self.savepoint.name} cannot be finished: the ZooKeeper session that began it has ended, or "
            f"somebody deletes it ({refused}). Create it again"
        )
