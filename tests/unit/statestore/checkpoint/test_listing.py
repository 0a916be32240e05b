"""What a checkpoint that Spark wrote holds, listed from a plain folder; and moving its metadata elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from statestore.checkpoint import FileEntry, LocalFiles, committed, listing, moved_metadata, needs_of, read_operator
from statestore.checkpoint.listing import read_snapshots
from statestore.checkpoint.raw_state import FORMAT
from statestore.errors import Damaged, NotFound
from statestore.hadoop.file_systems import Hadoop
from tests.unit.statestore.checkpoint.conftest import NAMES, unpack

STORES = {
    "hdfs-aggregation": ("stateStoreSave", {"default"}),
    "rocksdb-deduplication": ("dedupeWithinWatermark", {"default"}),
    "changelog1-transform": ("transformWithStateInPandasExec", {"default"}),
    "changelog2-join": (
        "symmetricHashJoin",
        {"left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue"},
    ),
    "changelog2-transform": ("transformWithStateInPandasExec", {"default"}),
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("checkpoints"))


@pytest.mark.parametrize("name", NAMES)
def test_each_form_of_state(name: str, checkpoints: Path) -> None:
    folder = checkpoints / name
    found = read_snapshots(LocalFiles(folder), "somewhere")
    done = committed(LocalFiles(folder))
    assert found.uri == "somewhere"
    assert [batch.id for batch in found.batches if batch.committed] == list(done)
    assert sum(not batch.committed for batch in found.batches) <= 1
    assert found.loadable == done
    operator, stores = STORES[name]
    assert {(store.operator, store.operator_name) for store in found.stores} == {(0, operator)}
    assert {(store.partition, store.store) for store in found.stores} == {
        (p, store) for p in (0, 1) for store in stores
    }
    files = [path for path in (folder / "state" / "0").rglob("*.*") if path.suffix != ".crc"]
    assert found.bytes == sum(path.stat().st_size for path in files)
    for store in found.stores:
        assert set(store.versions) >= {batch + 1 for batch in done}
        assert set(store.snapshots) <= set(store.versions)
        assert (store.tables > 0) == (not name.startswith("hdfs"))


@pytest.mark.parametrize("name", ["hdfs-aggregation", "changelog2-transform"])
def test_a_version_without_its_file_is_not_loadable(name: str, checkpoints: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoints / name, tmp_path / name))
    for file in (folder / "state" / "0" / "1").glob("2*.*"):
        file.unlink()
    found = read_snapshots(LocalFiles(folder))
    assert 1 not in found.loadable
    assert 0 in found.loadable


@pytest.mark.parametrize("name", ["hdfs-aggregation", "changelog2-transform"])
def test_a_batch_before_a_committed_one_is_committed(name: str, checkpoints: Path, tmp_path: Path) -> None:
    """What a savepoint restores, or a rescaling makes, has the commit of its last batch alone."""
    folder = Path(shutil.copytree(checkpoints / name, tmp_path / name))
    last = committed(LocalFiles(folder))[-1]
    for older in range(last):
        (folder / "commits" / str(older)).unlink()
    found = read_snapshots(LocalFiles(folder))
    assert [one.id for one in found.batches if one.committed] == list(range(last + 1))
    assert {one.committed_ms for one in found.batches if one.id < last} == {0}


def test_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_snapshots(LocalFiles(tmp_path))


def test_metadata_that_names_its_schemas_by_address_moves_with_them(checkpoints: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoints / "changelog1-transform", tmp_path / "copy"))
    files = LocalFiles(folder)
    before = read_operator(files, 0, 0)
    file = folder / before.metadata
    assert b"file:/changelog1-transform/state/0/_stateSchema/default/" in file.read_bytes()
    file.write_bytes(moved_metadata(file.read_bytes(), "bk://zk:2181/copy/"))
    assert b'"bk://zk:2181/copy/state/0/_stateSchema/default/' in file.read_bytes()
    assert read_operator(files, 0, 0) == before
    assert needs_of(files, committed(files)[-1]).gaps == []
    old = b'v1\n{"operatorInfo":{}}'
    assert moved_metadata(old, "bk://zk:2181/copy") == old


@pytest.mark.parametrize(
    "said",
    [
        "[]",
        "{}",
        '{"operatorInfo":{}}',
        '{"operatorInfo":null}',
        '{"operatorInfo":{"operatorId":0},"stateStoreInfo":[1]}',
        '{"operatorInfo":{"operatorId":0},"stateStoreInfo":5}',
        '{"operatorInfo":{"operatorId":0},"stateStoreInfo":[{"stateSchemaFilePaths":[null]}]}',
    ],
)
def test_metadata_that_cannot_be_moved_is_damaged(said: str) -> None:
    with pytest.raises(Damaged, match="the operator's metadata"):
        moved_metadata(b"v2\n" + said.encode(), "bk://zk:2181/copy")


class Running(LocalFiles):
    """A checkpoint whose query cleans up its oldest batch as often as its commits are listed."""

    def __init__(self, folder: Path, times: int) -> None:
        super().__init__(folder)
        self._times = times

    def list(self, path: str) -> Mapping[str, FileEntry]:
        listed = super().list(path)
        if path == "commits" and self._times:
            self._times -= 1
            for log in ("offsets", "commits"):
                oldest = min((self.folder / log).iterdir(), key=lambda file: int(file.name))
                oldest.unlink()
        return listed


def test_a_query_that_cleans_up_meanwhile_is_listed_as_it_is_then(checkpoints: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoints / "hdfs-aggregation", tmp_path / "q"))
    found = read_snapshots(Running(folder, 4))
    assert [batch.id for batch in found.batches] == [4, 5, 6, 7, 8]
    with pytest.raises(NotFound):
        read_snapshots(Running(Path(shutil.copytree(checkpoints / "hdfs-aggregation", tmp_path / "r")), 5))


class Session:
    """A Spark session and its settings. Another is made of a context and what a clone has, as PySpark makes it."""

    def __init__(self, context: object, settings: dict[str, str]) -> None:
        self.sparkContext, self.settings = context, dict(settings)
        self.conf = SimpleNamespace(get=self.settings.get, set=self.settings.__setitem__)
        self._jsparkSession = SimpleNamespace(cloneSession=lambda: self.settings)


@pytest.mark.parametrize("set_to", [None, "1", "2"])
@pytest.mark.parametrize(("name", "written"), [("hdfs-aggregation", "1"), ("changelog2-join", "2")])
def test_state_is_read_by_a_session_of_the_format_that_the_checkpoint_has(
    name: str, written: str, set_to: str | None, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other settings stay, such as the time zone in which rows are shown."""
    monkeypatch.setattr(Hadoop, "of", lambda _: None)
    monkeypatch.setattr(listing, "HadoopFiles", lambda *_: LocalFiles(checkpoints / name))
    settings = {"spark.sql.session.timeZone": "Asia/Tokyo"} | ({FORMAT: set_to} if set_to else {})
    given: Any = Session("a context", settings)
    session: Any = listing._session(given, "file:///q", None)
    assert session.settings == settings | ({FORMAT: written} if (set_to or "1") != written else {})
    assert (session is given) == (session.settings == settings)
    assert given.settings == settings
