"""Which files a savepoint takes, on a tree in memory."""

from __future__ import annotations

from functools import partial

import pytest

from statestore.bk.names import FileRecord, Names
from statestore.errors import CutFailed, InvalidInput, NotFound
from statestore.savepoints import cut
from tests.unit.statestore.bk.fake_zookeeper import FakeZooKeeper

CHECKPOINT = {
    "metadata": b'{"id":"5f"}',
    "eos-sink.json": b"{}",
    "offsets/0": b"v1\n{}\n0",
    "offsets/1": b"v1\n{}\n1",
    "offsets/2": b"v1\n{}\n2",
    "commits/0": b"v1\n{}",
    "commits/1": b"v1\n{}",
    "sources/0/0": b"v1\n{}",
    "state/0/_metadata/metadata": b'v1\n{"operatorInfo":{"operatorId":0,"operatorName":"stateStoreSave"},'
    b'"stateStoreInfo":[{"storeName":"default","numColsPrefixKey":0,"numPartitions":1}]}',
    "state/0/0/_metadata/schema": b"schema",
    "state/0/0/1.delta": b"1",
    "state/0/0/2.delta": b"2",
    "state/0/0/3.delta": b"3",
}


class World:
    def __init__(self, files: dict[str, bytes]) -> None:
        zookeeper = FakeZooKeeper()
        zookeeper.make("/eos-bk/n", "/eos-bk/L/empty", "/eos-bk/L/1", "/eos-bk/sp")
        zookeeper.tree["/eos-bk/n"] = (b"", 1)
        self.names = Names(zookeeper, "/eos-bk")
        self.files = files
        for number, (path, data) in enumerate(files.items()):
            full = f"/q/{path}"
            self.names.make_directories(full.rpartition("/")[0])
            record = FileRecord(f"w-{number}", 0, 1, number, number, 1024, len(data), 9, 77)
            zookeeper.write(self.names.create_file(full, record), partial(self.names.has_reference, record))

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise NotFound(path)
        return self.files[path]


def test_the_newest_committed_batch_is_taken_with_what_it_needs() -> None:
    world = World(CHECKPOINT)
    taken = cut.take(world.names, "/q", world.read)
    assert (taken.batch, taken.query) == (1, "5f")
    assert taken.files.keys() == CHECKPOINT.keys() - {"offsets/2", "state/0/0/3.delta", "commits/0"}
    assert taken.ledgers == [1]
    assert taken.files["state/0/0/2.delta"] == world.names.find("/q/state/0/0/2.delta")


def test_an_older_batch_can_be_named() -> None:
    world = World(CHECKPOINT)
    taken = cut.take(world.names, "/q", world.read, batch=0)
    assert taken.batch == 0
    assert "state/0/0/2.delta" not in taken.files
    with pytest.raises(InvalidInput, match="Batch 2 is not committed, or was cleaned away"):
        cut.take(world.names, "/q", world.read, batch=2)


@pytest.mark.parametrize("gone", ["state/0/0/1.delta", "offsets/1", "state/0/0/_metadata/schema"])
def test_a_missing_file_is_named(gone: str) -> None:
    world = World({path: data for path, data in CHECKPOINT.items() if path != gone})
    with pytest.raises(CutFailed, match=f"Batch 1 can't be restored: {gone}"):
        cut.take(world.names, "/q", world.read)


def test_there_must_be_a_checkpoint_with_a_committed_batch() -> None:
    world = World({"metadata": b'{"id":"5f"}', "offsets/0": b""})
    with pytest.raises(InvalidInput, match="no committed batch yet"):
        cut.take(world.names, "/q", world.read)
    with pytest.raises(NotFound, match="no checkpoint at /other"):
        cut.take(world.names, "/other", world.read)
