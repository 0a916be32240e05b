"""The names of a checkpoint on BookKeeper and of a savepoint of it, as the version before wrote them to ZooKeeper."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from statestore import savepoints
from tests.vectors import kept
from tests.waiting import until


@pytest.fixture
def tree(zookeeper: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The znodes that the version before wrote, under a root of the test's own."""
    root = f"/kept-{uuid.uuid4().hex[:10]}"
    nodes = kept.znodes()
    client = KazooClient(zookeeper)
    client.start()
    for node in nodes:
        path = root + node.path.removeprefix(nodes[0].path)
        client.create(path, node.data)
        for _ in range(node.version):
            client.set(path, node.data)
    yield f"bk://{zookeeper}/query", {"fs.bk.root": root}
    client.delete(root, recursive=True)
    client.stop()
    client.close()


def test_the_names_of_a_savepoint_on_bookkeeper_are_read(tree: tuple[str, dict[str, str]]) -> None:
    """Its bytes lie in ledgers of a BookKeeper that is gone; its names say all the rest."""
    uri, options = tree
    (found,) = savepoints.list_savepoints(uri, options)
    assert (found.name, found.state, found.batch) == ("kept", "ready", 1)
    assert found.query == json.loads(kept.checkpoint()["metadata"])["id"]
    assert found.files > 10
    savepoints.delete("kept", uri, options)
    until(lambda: savepoints.list_savepoints(uri, options) == [], "the savepoint is gone")
