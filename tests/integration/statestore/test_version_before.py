"""The names of a checkpoint on BookKeeper and of a savepoint of it, as the version before wrote them to ZooKeeper."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from statestore import savepoints
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints.store import SavepointStore
from tests.integration.statestore.conftest import raw_zookeeper
from tests.vectors import kept
from tests.waiting import until


@pytest.fixture
def tree(zookeeper: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The znodes that the version before wrote, under a root of the test's own."""
    root = f"/kept-{uuid.uuid4().hex[:10]}"
    nodes = kept.znodes()
    hadoop = Hadoop.of()
    keeper = hadoop.jvm.org.apache.zookeeper
    with raw_zookeeper(hadoop, zookeeper) as client:
        for node in nodes:
            path = root + node.path.removeprefix(nodes[0].path)
            client.create(path, node.data, keeper.ZooDefs.Ids.OPEN_ACL_UNSAFE, keeper.CreateMode.PERSISTENT)
            for _ in range(node.version):
                client.setData(path, node.data, -1)
        yield f"bk://{zookeeper}/query", {"fs.bk.root": root}
        keeper.ZKUtil.deleteRecursive(client, root)


def test_the_names_of_a_savepoint_on_bookkeeper_are_read(tree: tuple[str, dict[str, str]], zookeeper: str) -> None:
    """Its bytes lie in ledgers of a BookKeeper that is gone; its names say all the rest."""
    uri, options = tree
    (found,) = savepoints.list_savepoints(uri, options=options)
    assert (found.name, found.state, found.batch_id) == ("kept", "ready", 1)
    assert found.query == json.loads(kept.checkpoint()["metadata"])["id"]
    assert found.files > 10
    place = f"bk://{zookeeper}/restored"
    store = SavepointStore.of(place, options)
    with store.restore("kept", "/restored") as (restored, lengths):
        assert (restored, len(lengths)) == (found, found.files)
    assert {one.path.removeprefix("/restored/"): one.length for one in store.hadoop.walk(place)} == lengths
    savepoints.delete("kept", uri, options=options)
    until(lambda: savepoints.list_savepoints(uri, options=options) == [], "the savepoint is gone")
