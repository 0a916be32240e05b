"""A place for a new checkpoint: what is there already is named, and what was begun is removed so that it stays none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.cut import cut_of
from statestore.checkpoint.inspection import inspect
from statestore.checkpoint.logs import check_checkpoint
from statestore.checkpoint.place import check_free, remove
from statestore.errors import InvalidInput, NotFound
from statestore.hadoop.file_systems import Hadoop
from tests.unit.statestore.checkpoint.conftest import Copy
from tests.unit.statestore.folders import Folders

HADOOP = cast(Hadoop, Folders())


@pytest.fixture
def whole(copy: Copy) -> Path:
    return copy("hdfs-aggregation")


@pytest.fixture
def begun(whole: Path) -> Path:
    (whole / "metadata").write_bytes(b"")
    return whole


def test_a_checkpoint_that_was_begun_says_how_to_go_on(begun: Path) -> None:
    says = (
        rf"begun at {begun} and is not whole.* one was killed. Delete it \(statestore rm -r {begun}\), and do the same"
    )
    with pytest.raises(InvalidInput, match=says):
        check_free(HADOOP, str(begun))
    (finding,) = [one for one in inspect(LocalFiles(begun), 1).findings if one.file == "metadata"]
    assert finding.severity == "error"
    assert "metadata is empty, and so it is until a copy" in finding.message
    assert "delete the folder, and make it again" in finding.remedy, "and nothing of putting it back"
    with pytest.raises(InvalidInput, match=r"is not a whole checkpoint. Its metadata is empty"):
        cut_of(LocalFiles(begun), str(begun))
    for log in ("offsets", "commits"):
        shutil.rmtree(begun / log)
    with pytest.raises(NotFound, match=r"There is no checkpoint at q, but one was begun"):
        check_checkpoint(LocalFiles(begun), "q")


def test_a_checkpoint_that_is_whole_is_named(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"There is a checkpoint at .* already \(query [0-9a-f-]{36}, batch \d+\). S"
    ):
        check_free(HADOOP, str(whole))
    (whole / "metadata").write_text("damaged")
    with pytest.raises(InvalidInput, match=r"There is a checkpoint at .* already. Start"):
        check_free(HADOOP, str(whole))
    (tmp_path / "other").write_text("x")
    with pytest.raises(InvalidInput, match="There is something at"):
        check_free(HADOOP, str(tmp_path / "other"))
    with pytest.raises(InvalidInput, match="is inside the checkpoint"):
        check_free(HADOOP, f"{whole}/new", f"{whole}/")
    check_free(HADOOP, f"{whole}-new", str(whole))


@pytest.mark.parametrize("below", ["new", "state/0/new", "deep/er/new"])
def test_a_place_inside_another_checkpoint_is_refused(below: str, whole: Path) -> None:
    """`rm` asks about the outer one alone, and `cp` copies that one alone."""
    (whole / "deep" / "er").mkdir(parents=True)
    with pytest.raises(InvalidInput, match=rf"is inside the checkpoint {whole}\. A copy"):
        check_free(HADOOP, f"{whole}/{below}")
    (whole / "metadata").write_bytes(b"")
    with pytest.raises(InvalidInput, match=rf"is inside the checkpoint {whole}\."):
        check_free(HADOOP, f"{whole}/{below}/")


@pytest.mark.parametrize("name", ["offsets", "commits", "metadata"])
def test_a_folder_with_a_name_of_a_checkpoint_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    check_free(HADOOP, str(tmp_path / "new"))
    (tmp_path / name).rmdir()
    (tmp_path / name).write_text("of another program")
    check_free(HADOOP, str(tmp_path / "new"))


def test_metadata_goes_last(begun: Path) -> None:
    """Without it, Spark would give the rest a new id, and go on from its logs."""

    class Dies(Folders):
        def __init__(self, after: int) -> None:
            super().__init__()
            self.left = after

        def delete(self, uri: str, recursive: bool = False) -> bool:
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            return super().delete(uri, recursive)

    names = len(list(begun.iterdir()))
    for after in (1, names - 2):
        with pytest.raises(KeyboardInterrupt):
            remove(cast(Hadoop, Dies(after)), str(begun))
        assert (begun / "metadata").exists()
    remove(HADOOP, str(begun))
    assert not begun.exists()
