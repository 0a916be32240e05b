"""Savepoints on a real ZooKeeper and a real bookie: what is held, restored, freed, and who dies on the way."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statestore import BkAddress, InvalidInput, NotFound, savepoints
from statestore.bk import tree as names
from statestore.bk.tree import BkLedger, FileRecord
from statestore.cli import app as cli
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import pulsar_topic
from statestore.savepoints.stream import Manifest
from tests.integration.statestore.conftest import OwnTree
from tests.waiting import until

SCHEMAS = "state/0/_stateSchema/default/0_schema"


def checkpoint(hadoop: Hadoop, uri: str, batches: int = 2) -> dict[str, bytes]:
    """Write a small checkpoint as Spark lays it out: packed files, an empty one, a large one, v2 operator metadata."""
    operator = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateInPandasExec"},
        "stateStoreInfo": [
            {
                "storeName": "default",
                "numColsPrefixKey": 0,
                "numPartitions": 1,
                "stateSchemaFilePaths": [f"{uri}/{SCHEMAS}"],
            }
        ],
    }
    files = {
        "metadata": b'{"id":"3f0c"}',
        "state/0/_metadata/v2/0": b"v2\n" + json.dumps(operator).encode(),
        SCHEMAS: b"",
        f"state/0/0/{batches}.snapshot": os.urandom(3 * 1024 * 1024),
        "sources/0/0": b"v1\n",
    }
    for batch in range(batches):
        files |= {f"offsets/{batch}": b"v1\n{}\n%d" % batch, f"commits/{batch}": b"v1\n{}"}
    for path, data in files.items():
        hadoop.write(f"{uri}/{path}", data)
    return files


def content(hadoop: Hadoop, uri: str) -> dict[str, bytes]:
    top = hadoop.status(uri)
    assert top is not None
    return {one.path.removeprefix(top.path + "/"): hadoop.read(one.uri) for one in hadoop.walk(uri)}


class Tree:
    """A tree of names of the test's own, whose ledgers are freed at once when nothing refers to them."""

    def __init__(self, own_tree: OwnTree, **more: str) -> None:
        self.uri, given = own_tree
        self.options: dict[str, Any] = {**given, "fs.bk.grace.ms": "0", "fs.bk.maintenance.ms": "0", **more}
        self.hadoop = Hadoop.of(None, self.options)

    def ledgers(self) -> list[BkLedger]:
        return list(names.ledgers(self.hadoop, BkAddress.parse(self.uri, self.options)).values())

    def file(self, path: str) -> FileRecord:
        return names.files(self.hadoop, BkAddress.parse(f"{self.uri}{path}", self.options))[f"/{path}"]

    def sweep(self) -> None:
        self.hadoop.jvm.eos.bk.Maintenance.sweep(self.hadoop.file_system(self.uri))

    def create(self, name: str, source: str, **more: Any) -> savepoints.Savepoint:
        return savepoints.create(name, source, options=self.options, **more)

    def restore(self, name: str, target: str) -> savepoints.Savepoint | Manifest:
        return savepoints.restore(name, target, options=self.options)

    def delete(self, name: str) -> None:
        savepoints.delete(name, self.uri, options=self.options)


@pytest.fixture
def tree(own_tree: OwnTree) -> Tree:
    return Tree(own_tree)


def test_a_savepoint_outlives_its_checkpoint_and_lets_go_of_all(tree: Tree) -> None:
    """Also while its writer still has the pack open: what is published in it stays readable."""
    source = f"{tree.uri}q"
    files = checkpoint(tree.hadoop, source)
    files["state/0/0/3.snapshot"] = os.urandom(2 * 1024 * 1024)
    # Of a batch that isn't committed:
    tree.hadoop.write(f"{source}/state/0/0/3.snapshot", files["state/0/0/3.snapshot"])
    made = tree.create("one", source)
    assert (made.state, made.batch_id, made.query) == ("ready", 1, "3f0c")
    tree.hadoop.delete(source, recursive=True)
    tree.sweep()
    held = [ledger for ledger in tree.ledgers() if "one" in ledger.savepoints]
    assert {ledger.sealed for ledger in held} == {True, False}, "the large file's, and the pack that is still open"
    assert all(ledger.sealed is False or ledger.savepoints for ledger in tree.ledgers()), "the rest is freed"
    target = f"{tree.uri}deep/down/new"
    assert tree.restore("one", target) == made
    restored = content(tree.hadoop, target)
    moved = json.loads(restored.pop("state/0/_metadata/v2/0").partition(b"\n")[2])
    assert moved["stateStoreInfo"][0]["stateSchemaFilePaths"] == [f"{target}/{SCHEMAS}"]
    del files["state/0/_metadata/v2/0"], files["state/0/0/3.snapshot"], files["commits/0"]
    assert restored == files
    assert savepoints.list_savepoints(tree.uri, options=tree.options) == [made]

    tree.delete("one")
    tree.sweep()
    assert content(tree.hadoop, target).keys() == restored.keys() | {"state/0/_metadata/v2/0"}
    again = tree.create("again", target)
    assert again.batch_id == 1
    tree.delete("again")
    tree.hadoop.delete(target, recursive=True)
    tree.sweep()
    assert [ledger for ledger in tree.ledgers() if ledger.sealed] == []
    assert {ledger.references for ledger in tree.ledgers()} == {()}
    with pytest.raises(NotFound, match="no savepoint one"):
        tree.delete("one")


def test_a_pack_that_a_savepoint_holds_is_not_compacted(own_tree: OwnTree) -> None:
    tree = Tree(own_tree, **{"fs.bk.pack.files": "6", "fs.bk.compact.below": "0.95"})
    source = f"{tree.uri}q"
    for name in ("filler-1", "filler-2"):
        tree.hadoop.write(f"{source}/{name}", bytes(10_000))
    checkpoint(tree.hadoop, source)
    record = tree.file("q/metadata")
    assert record.ledger == tree.file("q/filler-1").ledger
    tree.create("one", source)
    until(
        lambda: {ledger.id: ledger for ledger in tree.ledgers()}[record.ledger].sealed,
        "the first pack is full, and is closed in the background",
    )
    for name in ("filler-1", "filler-2"):
        tree.hadoop.delete(f"{source}/{name}")
    tree.sweep()
    assert tree.file("q/metadata") == record, "a sparse pack, left alone"
    tree.delete("one")
    tree.sweep()
    moved = tree.file("q/metadata")
    assert moved.ledger != record.ledger
    assert moved.write == f"{record.write}~"
    assert tree.hadoop.read(f"{source}/metadata") == b'{"id":"3f0c"}'


def test_what_is_not_there_or_taken_is_refused(tree: Tree) -> None:
    source = f"{tree.uri}q"
    checkpoint(tree.hadoop, source)
    with pytest.raises(NotFound, match=r"There is no checkpoint at .*/nothing"):
        tree.create("one", f"{tree.uri}nothing")
    with pytest.raises(InvalidInput, match="Batch 7 is not committed, or was cleaned away"):
        tree.create("one", source, batch_id=7)
    assert savepoints.list_savepoints(tree.uri, options=tree.options) == []
    tree.create("one", source)
    with pytest.raises(InvalidInput, match="a savepoint one in this tree already"):
        tree.create("one", source)
    with pytest.raises(InvalidInput, match=r"There is a checkpoint at .*/q already"):
        tree.restore("one", source)
    with pytest.raises(NotFound, match="There are: one"):
        tree.restore("two", f"{tree.uri}new")
    tree.delete("one")
    with pytest.raises(InvalidInput, match="file://"):
        tree.create("one", "file:///q")


@pytest.fixture
def savepoint(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run `statestore savepoint …` in this process, which starts one JVM for all: exit code, output, error."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["statestore", "savepoint", *words])
        with pytest.raises(SystemExit) as left:
            cli.app()
        told = capfd.readouterr()
        return int(left.value.code or 0), told.out, told.err

    return run


def first_cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:4]] for line in table.splitlines()]


def test_the_command_line(
    savepoint: Callable[..., tuple[int, str, str]], tree: Tree, pulsar: Any, tmp_path: Path
) -> None:
    source = f"{tree.uri}q"
    files = checkpoint(tree.hadoop, source)
    options = [word for name, value in tree.options.items() for word in ("-o", f"{name}={value}")]
    code, out, err = savepoint("create", "one", source, "--json", *options)
    assert code == 0, err
    assert json.loads(out)["files"] == len(files) - 1  # commits/0 is not needed
    code, out, _ = savepoint("list", tree.uri, *options)
    assert ["one", "ready", "1"] in first_cells(out)
    code, _, err = savepoint("create", "one", source, *options)
    assert (code, "already" in err) == (2, True)
    code, _, err = savepoint("restore", "one", f"{tree.uri}new", *options)
    assert (code, err.strip()) == (0, f"{tree.uri}new is at batch 1 of savepoint one")
    code, _, err = savepoint("delete", "one", tree.uri, *options)
    assert (code, err.strip()) == (0, "Savepoint one is deleted")

    to = f"{pulsar.service_url}/savepoints-{uuid.uuid4().hex[:10]}"
    code, _, err = savepoint("create", "portable", source, "--to", to, *options)
    assert code == 0, err
    assert "Savepoint portable of batch 1 is on the topic: " in err
    code, out, _ = savepoint("list", to)
    assert ["portable", "ready", "1"] in first_cells(out)
    code, _, err = savepoint("restore", to, (tmp_path / "new").as_uri())
    assert code == 0, err
    got = {path.relative_to(tmp_path / "new").as_posix(): path for path in (tmp_path / "new").rglob("*")}
    assert got["state/0/0/2.snapshot"].read_bytes() == files["state/0/0/2.snapshot"]
    assert got["metadata"].read_bytes() == files["metadata"]
    code, _, err = savepoint("delete", "portable", to)
    assert (code, "goes with the topic's messages" in err) == (2, True)


def test_a_topic_carries_a_checkpoint_from_and_to_any_file_system(tree: Tree, pulsar: Any, tmp_path: Path) -> None:
    """bk:// to a topic, to file://, to a topic, to bk://: nothing but the operator's own address changes."""
    source, to = f"{tree.uri}q", f"{pulsar.service_url}/savepoints-{uuid.uuid4().hex[:10]}"
    files = checkpoint(tree.hadoop, source)
    told: list[tuple[int, int]] = []
    made = pulsar_topic.create(
        "one", source, to, options=tree.options, progress=lambda done, total: told.append((done, total))
    )
    assert (made.batch_id, made.query, made.source) == (1, "3f0c", source)
    assert told[-1] == (made.size, made.size)
    assert savepoints.list_savepoints(tree.uri, options=tree.options) == [], "the hold on the ledgers is given back"
    assert list(tree.hadoop.walk(f"{tree.uri}.savepoints")) == []
    tree.create("dead-copy-1", source)
    tree.restore("dead-copy-1", f"{tree.uri}.savepoints/dead-copy-1")  # as a copy that died leaves it
    tree.delete("dead-copy-1")
    assert list(tree.hadoop.walk(f"{tree.uri}.savepoints")) == []
    tree.hadoop.delete(source, recursive=True)
    local = (tmp_path / "local").as_uri()
    assert pulsar_topic.restore(to, local) == made
    pulsar_topic.create("two", local, to)
    back = pulsar_topic.restore(to, f"{tree.uri}back", "two", options=tree.options)
    assert back.source == local
    restored = content(tree.hadoop, f"{tree.uri}back")
    moved = json.loads(restored.pop("state/0/_metadata/v2/0").partition(b"\n")[2])
    assert moved["stateStoreInfo"][0]["stateSchemaFilePaths"] == [f"{tree.uri}back/{SCHEMAS}"]
    del files["state/0/_metadata/v2/0"], files["commits/0"]
    assert restored == files
    with pytest.raises(InvalidInput, match="There is a checkpoint at"):
        pulsar_topic.restore(to, local, "one")
