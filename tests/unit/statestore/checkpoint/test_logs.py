"""Whether a folder is a checkpoint, and what is said of one that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.logs import check_checkpoint, is_checkpoint
from statestore.errors import NotFound


def test_which_folders_are_checkpoints() -> None:
    assert is_checkpoint({"metadata", "offsets"})
    assert is_checkpoint({"commits"})
    assert not is_checkpoint({"metadata", "data"})


@pytest.mark.parametrize(
    ("folders", "says"),
    [
        ([], "There is no checkpoint at /q: there is nothing, or an empty folder"),
        (["part-0"], "neither offsets nor commits is there, but part-0. Name the folder that the query has"),
        (["a", "query/commits"], "but a, query. /q/query is one"),
        (list("abcdef"), "but a, b, c, d, e, …. Name"),
    ],
)
def test_what_is_there_instead_is_named(folders: list[str], says: str, tmp_path: Path) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(NotFound) as refused:
        check_checkpoint(LocalFiles(tmp_path), "/q")
    assert says in str(refused.value)
