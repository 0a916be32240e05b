"""A checkpoint on a ZooKeeper in memory, of which savepoints are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from statestore.bk.names import FileRecord, Names
from statestore.savepoints import creating, store
from statestore.savepoints.manifest import Cut, Savepoint
from tests.unit.statestore.bk.fake_zookeeper import FakeZooKeeper

SOURCE = "bk://zk:2181/q"
LEDGERS = (1, 2)


def record(write: str, ledger: int, length: int = 5) -> FileRecord:
    return FileRecord(write, 0, ledger, 0, 0, 1024, length, 9, 77)


FILES = {
    "metadata": record("w-1", 1),
    "offsets/0": record("w-2", 1),
    "commits/0": record("w-3", 2),
    "state/0/0/1.delta": record("w-4", 2),
    "state/0/0/_empty": record("w-5", -1, 0),
}
CUT = Cut(0, "a-query", FILES)


class World:
    """A tree with a running query's checkpoint at /q, on ledgers 1 and 2."""

    def __init__(self) -> None:
        self.zookeeper = FakeZooKeeper()
        self.zookeeper.make("/eos-bk/n", "/eos-bk/L/empty", "/eos-bk/w", "/eos-bk/del", "/eos-bk/sp")
        self.zookeeper.tree["/eos-bk/n"] = (b"", 1)
        self.names = Names(self.zookeeper, "/eos-bk")
        for ledger in LEDGERS:
            self.make_ledger(ledger)
        for directory in ("/q/offsets", "/q/commits", "/q/state/0/0"):
            self.names.make_directories(directory)
        for path, file in FILES.items():
            self.zookeeper.write(self.names.create_file("/q/" + path, file), partial(self.names.has_reference, file))
        self.zookeeper.writes = 0

    def make_ledger(self, ledger: int) -> None:
        self.zookeeper.tree[f"/eos-bk/L/{ledger}"] = (b"sealed p 0 -1", 0)

    def create(self, name: str = "one", take_cut: Callable[[], Cut] = lambda: CUT) -> Savepoint:
        return creating.create(self.names, name, SOURCE, take_cut)

    def delete_query(self) -> None:
        self.names.remove_tree("/q")

    def sweep(self) -> None:
        """Free all ledgers that nothing refers to, as the jar's sweeper does after its grace time."""
        for ledger in self.names.ledgers():
            if not ledger.references:
                del self.zookeeper.tree[f"/eos-bk/L/{ledger.id}"]

    def held(self, name: str = "one") -> list[int]:
        return [ledger.id for ledger in self.names.ledgers() if name in ledger.savepoints]

    def check(self) -> None:
        """No file and no ready savepoint without its ledgers."""
        ledgers = {ledger.id for ledger in self.names.ledgers()} | {-1}
        for path, file in self.names.walk("/"):
            assert file.ledger in ledgers, path
        for savepoint in store.all_savepoints(self.names):
            if savepoint.state == "ready":
                files = store.read(self.names, savepoint.name)[1]
                assert {file.ledger for file in files.values()} <= ledgers
