"""A checkpoint is copied as a cut, on plain folders, while a stand-in for its query goes on and cleans up."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from statestore import CutFailed, InvalidInput, NotFound
from statestore.checkpoint import LocalFiles, committed, needs_of
from statestore.checkpoint.inspection import inspect
from statestore.checkpoint.rocksdb import read_snapshot
from statestore.checkpoint.transfer import _Copying, copy_checkpoint
from statestore.hadoop.file_systems import Hadoop
from tests.unit.statestore.checkpoint.conftest import NAMES
from tests.unit.statestore.folders import Folders
from tests.waiting import until


@pytest.fixture
def source(unpacked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unpacked / "hdfs-aggregation", tmp_path / "source"))


def copy(source: Path, before: Callable[[Path], None] = lambda path: None, progress: Any = lambda *_: None) -> Any:
    folders = Folders(before)
    return copy_checkpoint(cast(Hadoop, folders), str(source), f"{source}-copy", progress), folders.written


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_has_what_the_newest_batch_needs_and_no_more(name: str, unpacked: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(unpacked / name, tmp_path / "source"))
    (source / "sink.json").write_bytes(b"{}")
    last = last_of(source)
    (source / "offsets" / str(last + 1)).write_bytes(b"v1\n{}\n0")  # planned, perhaps half written, not committed
    told: list[tuple[int, int, int]] = []
    copied, _ = copy(source, progress=lambda *now: told.append(now))
    found = files_of(Path(f"{source}-copy"))
    needed = set(needs_of(LocalFiles(source), last).files)
    assert found.keys() >= needed | {"sink.json"}
    assert str(last) in {Path(path).name for path in found if path.startswith("commits/")}
    assert f"offsets/{last + 1}" not in found
    for path, data in found.items():
        assert data == (source / path).read_bytes() or path.startswith(f"state/{path.split('/')[1]}/_metadata/v2")
    report = inspect(LocalFiles(Path(f"{source}-copy")), 1)
    assert not [finding for finding in report.findings if finding.severity == "error"]
    assert (copied.batch_id, copied.files, copied.bytes) == (last, len(found), sum(map(len, found.values())))
    assert told[-1] == (copied.files, copied.files, copied.bytes)


def test_it_can_be_used_only_when_it_is_whole(source: Path) -> None:
    _, written = copy(source)
    parts = [path.removeprefix(f"{source}-copy/").split("/")[0] for path in written]
    assert parts[0] == parts[-1] == "metadata"
    assert parts.index("commits") > max(place for place, part in enumerate(parts) if part in ("state", "sources"))


def test_a_newer_batch_is_taken_when_files_go(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "source-copy"
    made = Made(source)
    made.batch(0)

    def go_on(path: Path) -> None:
        if path == source / "state/0/1/1.delta" and path.exists():
            until((target / "state/0/0/1.delta").exists)
            made.batch(1, kind="snapshot")
            (source / "state/0/0/1.delta").unlink()
            path.unlink()

    copied, _ = copy(source, go_on)
    assert copied.batch_id == 1
    found = files_of(target)
    assert found.keys() >= {"commits/1", "offsets/0", "offsets/1", "state/0/0/2.snapshot", "state/0/1/2.snapshot"}
    # Copied for batch 0, of no use to batch 1.
    assert "state/0/0/1.delta" not in found
    assert (copied.files, copied.bytes) == (len(found), sum(map(len, found.values())))


def test_the_progress_of_a_copy_of_many_files_takes_no_time() -> None:
    """3,000 stores have 40,000 files that a batch needs: to add up all of them after each one took 15 s."""
    told: list[tuple[int, int, int]] = []
    nowhere: Any = None
    copying = _Copying(nowhere, nowhere, nowhere, lambda *now: told.append(now), lambda cut: None)
    began = time.process_time()
    for number in range(40_000):
        copying.note(f"state/0/0/{number}.delta", 2)
    copying.note("state/0/0/0.delta", 3)
    assert told[-1] == (40_000, 0, 80_001)
    assert time.process_time() - began < 3


class Made:
    """A checkpoint of one operator with two partitions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.put("metadata", b'{"id":"5f"}')
        self.put(
            "state/0/_metadata/metadata",
            b'v1\n{"operatorInfo":{"operatorId":0,"operatorName":"stateStoreSave"},'
            b'"stateStoreInfo":[{"storeName":"default","numColsPrefixKey":0,"numPartitions":2}]}',
        )
        self.put("state/0/0/_metadata/schema", b"schema")

    def put(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def batch(self, number: int, kind: str = "delta") -> None:
        self.put(f"offsets/{number}", b"v1\n{}\n0")
        for partition in (0, 1):
            self.put(f"state/0/{partition}/{number + 1}.{kind}", b"d")
        self.put(f"commits/{number}", b"v1\n{}")


def test_without_a_newer_batch_a_lost_file_is_an_error_and_nothing_stays(source: Path) -> None:
    lost: list[Path] = []

    def lose(path: Path) -> None:
        if not lost and "state" in path.parts:
            path.unlink()
            lost.append(path)

    with pytest.raises(CutFailed, match="No newer batch than"):
        copy(source, lose)
    assert not Path(f"{source}-copy").exists()


def test_a_file_that_is_listed_but_not_there_is_an_error(source: Path) -> None:
    def hide(path: Path) -> None:
        if "state" in path.parts:
            raise NotFound(str(path))

    with pytest.raises(CutFailed, match="No newer batch than"):
        copy(source, hide)


def test_a_query_that_cleans_too_fast_is_named(tmp_path: Path) -> None:
    made = Made(tmp_path / "source")
    made.batch(0)
    made.batch(1)
    number = 1

    def race(path: Path) -> None:
        nonlocal number
        if path.name == "1.delta" and path.parent.name == "0":
            number += 1
            made.batch(number)
            raise NotFound(str(path))

    with pytest.raises(CutFailed, match=r"cleaned away faster .*minBatchesToRetain"):
        copy(tmp_path / "source", race)
    assert not (tmp_path / "source-copy").exists()


def test_a_commit_that_is_cleaned_at_the_last_moment_is_in_the_copy(source: Path) -> None:
    oldest, last = committed(LocalFiles(source))[0], last_of(source)

    def clean(path: Path) -> None:
        if path == source / "commits" / str(oldest):
            (source / "commits" / str(last)).unlink()

    copied, _ = copy(source, clean)
    assert copied.batch_id == last
    assert f"commits/{last}" in files_of(Path(f"{source}-copy"))


def test_a_snapshot_that_is_replaced_while_it_is_copied_spoils_the_copy(unpacked: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(unpacked / "rocksdb-deduplication", tmp_path / "source"))
    needs = needs_of(LocalFiles(source), last_of(source)).files.values()
    tables = {
        need.path: read_snapshot((source / need.path).read_bytes()).tables for need in needs if need.kind == "zip"
    }
    one, other = [path for path, found in tables.items() if found][:2]

    def replace(path: Path) -> None:
        if path == source / one:
            shutil.copy(source / other, path)

    with pytest.raises(CutFailed, match=r"The copy is not whole: .*refers to it"):
        copy(source, replace)
    assert not Path(f"{source}-copy").exists()


def last_of(folder: Path) -> int:
    return committed(LocalFiles(folder))[-1]


def test_history_that_goes_meanwhile_is_left_out(source: Path) -> None:
    oldest = committed(LocalFiles(source))[0]
    copied, _ = copy(source, lambda path: path.unlink() if path == source / "commits" / str(oldest) else None)
    found = files_of(Path(f"{source}-copy"))
    assert f"commits/{oldest}" not in found
    assert copied.files == len(found)


def test_any_error_removes_what_was_begun(source: Path) -> None:
    def stop(path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(source, stop)
    assert not Path(f"{source}-copy").exists()


def test_what_is_refused(source: Path, tmp_path: Path) -> None:
    Path(f"{source}-copy").mkdir()
    with pytest.raises(InvalidInput, match="There is an empty folder at"):
        copy(source)
    with pytest.raises(NotFound):
        copy(tmp_path / "nothing")
    (tmp_path / "empty/offsets").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="no committed batch"):
        copy(tmp_path / "empty")
    assert not (tmp_path / "empty-copy").exists()
