"""What a command leaves in a tree that is killed while it reads or copies a checkpoint: it is found, and removed.

And what is sent of a checkpoint on another file system, where Spark may replace a file meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from statestore.bk.address import BkAddress
from statestore.checkpoint.cut import Cut
from statestore.errors import CutFailed, InvalidInput, NotFound
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import bookkeeper, pulsar_topic, topic
from statestore.savepoints.folder import Source
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.store import SavepointStore
from tests.unit.statestore.checkpoint.conftest import needed, unpack
from tests.unit.statestore.folders import Folders

SOURCE = "bk://zk:2181/q"


class Tree:
    """What a tree holds: savepoints by name, and the addresses where files are. Here in the place of Hadoop, too."""

    def __init__(self) -> None:
        self.savepoints: dict[str, Savepoint] = {}
        self.places: set[str] = set()

    def delete(self, uri: str, recursive: bool = False) -> bool:
        self.places.discard(uri)
        return True

    def kill(self) -> None:
        """End the process that makes whatever is being made."""
        for name, one in self.savepoints.items():
            self.savepoints[name] = replace(one, state="abandoned") if one.state == "building" else one


class Played(SavepointStore):
    """The savepoints of such a tree."""

    @property
    def tree(self) -> Tree:
        return cast(Tree, self.hadoop)

    def all(self) -> list[Savepoint]:
        return list(self.tree.savepoints.values())

    def create(self, name: str, cut: Cut) -> Savepoint:
        made = self.tree.savepoints[name] = Savepoint(name, "ready", self.address.uri, 0, cut.batch_id, cut.query)
        return made

    def take(self, name: str) -> None:
        self.tree.savepoints[name] = Savepoint(name, "building", self.address.uri, 0)

    @contextlib.contextmanager
    def restore(self, name: str, target: str) -> Iterator[tuple[Savepoint, dict[str, int]]]:
        self.tree.places.add(self.address.at(target).uri)
        yield self.tree.savepoints[name], {"metadata": 5}

    def delete(self, name: str) -> None:
        if self.tree.savepoints.pop(name, None) is None:
            raise NotFound(name)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Played:
    monkeypatch.setattr(bookkeeper, "cut_of", lambda *_: Cut(7, "a-query", {}, frozenset(), {}))
    monkeypatch.setattr(bookkeeper, "SavepointStore", Played)
    return Played(cast(Hadoop, Tree()), BkAddress.parse(SOURCE))


def test_a_copy_leaves_nothing_and_shows_that_its_maker_lives(store: Played) -> None:
    with pulsar_topic._held("nightly", store, None) as (what, files):
        (one,) = store.all()
        assert (one.name[:13], one.state, len(one.name)) == ("nightly-copy-", "building", 25)
        assert (what.name, what.source, what.batch_id, files.files()) == ("nightly", SOURCE, 7, [("metadata", 5)])
        assert store.tree.places == {f"bk://zk:2181/.savepoints/{one.name}"}
    assert (store.all(), store.tree.places) == ([], set())


@pytest.mark.parametrize("when", ["cut", "files"])
def test_what_a_killed_copy_has_left_is_named_and_removed(
    store: Played, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed while the cut is a savepoint that nothing else tells from a user's, or while it sends the files."""
    killed: Any = store.tree.kill
    if when == "cut":
        monkeypatch.setattr(Played, "delete", lambda *_: killed())
    copy = pulsar_topic._held("nightly", store, None)
    copy.__enter__()
    killed()
    monkeypatch.undo()
    monkeypatch.setattr(bookkeeper, "SavepointStore", Played)
    store.tree.savepoints["nightly"] = Savepoint("nightly", "ready", SOURCE, 0, 7, "a-query")
    (left,) = bookkeeper.left_behind(store)
    assert left.name.startswith("nightly-copy-")
    assert (len(store.all()), len(store.tree.places)) == (3 if when == "cut" else 2, 1)
    assert bookkeeper.remove_left(store) == [left.name]
    assert (list(store.tree.savepoints), store.tree.places) == (["nightly"], set())


def test_the_next_copy_removes_what_is_a_day_old(store: Played) -> None:
    store.tree.savepoints["old-copy-0123456789ab"] = Savepoint("old-copy-0123456789ab", "abandoned", SOURCE, 0)
    store.tree.savepoints["mine-cut"] = Savepoint("mine-cut", "ready", SOURCE, 0)
    with pulsar_topic._held("mine", store, None):
        assert [one.name for one in store.all() if one.state != "building"] == ["mine-cut"]
    assert list(store.tree.savepoints) == ["mine-cut"], "a user's own"


def test_deleting_a_savepoint_leaves_another_whose_name_only_looks_like_ours(
    store: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Played, "of", lambda *_: store)
    monkeypatch.setattr(Played, "tell_sink", lambda *_: None)
    for name in ("mine", "mine-cut"):
        store.tree.savepoints[name] = Savepoint(name, "ready", SOURCE, 0)
    bookkeeper.delete("mine", SOURCE)
    assert list(store.tree.savepoints) == ["mine-cut"]


@pytest.mark.parametrize("times", [1, 3])
def test_a_snapshot_that_is_replaced_after_its_tables_were_noted_is_not_sent(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same length, as where only the names of its tables differ: a second task has uploaded the same version."""
    checkpoint = Path(shutil.copytree(unpack(tmp_path) / "rocksdb-deduplication", tmp_path / "q"))
    snapshot = needed(checkpoint, "zip")
    tries: list[bool] = []

    def write(cluster: object, name: str, what: object, source: Source, *_: object) -> list[str]:
        if len(tries) < times:
            changed = snapshot.stat().st_mtime + 1
            os.utime(snapshot, (changed, changed))
        tries.append(True)
        return [path for path, _ in source.files() if list(source.read(path))]

    monkeypatch.setattr(Hadoop, "of", lambda *_: Folders())
    monkeypatch.setattr(topic, "write", write)

    def create() -> Any:
        return pulsar_topic.create("one", str(checkpoint), "pulsar://nowhere:1/savepoints", operators=1)

    if times == 1:
        assert snapshot.relative_to(checkpoint).as_posix() in create()
    else:
        with pytest.raises(CutFailed, match=rf"changed 3 times while it was copied: .*{snapshot.name} was replaced"):
            create()
    assert len(tries) == times + (times == 1)


@pytest.mark.parametrize("changed_s", [0, 1])
def test_a_store_that_tells_a_files_time_in_whole_seconds_replaces_none_by_that(
    changed_s: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lists have milliseconds."""
    checkpoint = Path(shutil.copytree(unpack(tmp_path) / "rocksdb-deduplication", tmp_path / "q"))
    for file in checkpoint.rglob("*"):
        os.utime(file, (1_700_000_000.123, 1_700_000_000.123))

    class Alone(Folders):
        def status(self, uri: str) -> Any:
            found = super().status(uri)
            return found and replace(found, mtime_ms=found.mtime_ms // 1_000 * 1_000 + 1_000 * changed_s)

        def list(self, uri: str) -> Any:
            return Folders().list(uri)

    def write(cluster: object, name: str, what: object, source: Source, *_: object) -> list[str]:
        return [path for path, _ in source.files() if list(source.read(path))]

    monkeypatch.setattr(Hadoop, "of", lambda *_: Alone())
    monkeypatch.setattr(topic, "write", write)
    with contextlib.ExitStack() as block:
        if changed_s:
            block.enter_context(pytest.raises(CutFailed, match="was replaced"))
        assert pulsar_topic.create("one", str(checkpoint), "pulsar://nowhere:1/savepoints", operators=1)


@pytest.mark.parametrize("timeout_s", [float("nan"), float("inf"), -600, 0, 0.0004, 1e12, "600", None])
def test_a_time_out_that_is_none_is_refused_before_the_topic_is_made(timeout_s: Any) -> None:
    with pytest.raises(InvalidInput, match=r"time-out is .*\. Give seconds, from 1 to 1,000,000,000$"):
        pulsar_topic.create("nightly", SOURCE, "pulsar://localhost:1/savepoints", timeout_s=timeout_s)
