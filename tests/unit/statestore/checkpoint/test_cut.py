"""The cut of a checkpoint: what a copy at a batch holds, and in which order it is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles, needs_of
from statestore.checkpoint.cut import cut_of, names_its_place, write_order
from statestore.errors import CutFailed, InvalidInput, NotFound
from tests.unit.statestore.checkpoint.conftest import NAMES, unpack


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def folder(unpacked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unpacked / "hdfs-aggregation", tmp_path / "q"))


@pytest.mark.parametrize("name", NAMES)
def test_it_holds_what_the_newest_batch_needs_and_no_state_besides(name: str, unpacked: Path) -> None:
    folder = unpacked / name
    cut = cut_of(LocalFiles(folder), "q")
    assert cut.batch_id == 7
    assert cut.query == json.loads((folder / "metadata").read_text())["id"]
    assert cut.lengths.keys() == needs_of(LocalFiles(folder), 7).files.keys()
    assert all((folder / path).stat().st_size == length for path, length in cut.lengths.items())
    assert "offsets/8" not in cut.lengths.keys() | cut.history, "it is not committed"
    assert {path.partition("/")[0] for path in cut.history} == {"offsets", "commits"}


def test_an_older_batch_and_a_sinks_own_file(folder: Path) -> None:
    (folder / "eos-sink.json").write_text("{}")
    cut = cut_of(LocalFiles(folder), "q", 6)
    assert cut.batch_id == 6
    assert cut.lengths["eos-sink.json"] == 2
    assert {"offsets/7", "commits/7"}.isdisjoint(cut.lengths.keys() | cut.history)


def test_batches_that_are_not_there_are_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="Batch 8 is not committed, or was cleaned away"):
        cut_of(LocalFiles(folder), "q", 8)
    shutil.rmtree(folder / "commits")
    with pytest.raises(InvalidInput, match="q has no committed batch yet"):
        cut_of(LocalFiles(folder), "q")
    with pytest.raises(NotFound, match="There is no checkpoint at nowhere"):
        cut_of(LocalFiles(folder / "nowhere"), "nowhere")


@pytest.mark.parametrize("lost", ["state/0/0/8.delta", "metadata", "offsets/7", "state"])
def test_a_batch_that_spark_could_not_go_on_from_is_not_cut(lost: str, folder: Path) -> None:
    if lost == "state":
        shutil.rmtree(folder / "state" / "0")
    else:
        (folder / lost).unlink()
    with pytest.raises(CutFailed, match=f"Batch 7 cannot be resumed: {lost}"):
        cut_of(LocalFiles(folder), "q")


def test_commits_are_written_late_and_metadata_last() -> None:
    paths = ["metadata", "commits/1", "state/0/0/1.delta", "offsets/1", "commits/0"]
    assert sorted(paths, key=write_order) == ["offsets/1", "state/0/0/1.delta", "commits/0", "commits/1", "metadata"]


def test_only_operators_name_the_place() -> None:
    assert names_its_place("state/0/_metadata/v2/0")
    assert not names_its_place("state/0/_metadata/metadata")
    assert not names_its_place("state/0/0/_metadata/schema")
