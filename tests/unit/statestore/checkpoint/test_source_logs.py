"""Which files of a source's log a restart needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.logs import missing_in, source_logs

LOGS: dict[str, tuple[list[str], list[str], tuple[int, ...]]] = {
    "nothing": ([], [], ()),
    "no compact one yet": (["0", "1", "2"], ["0", "1", "2"], ()),
    "one, which holds all before it": (["1", "2.compact", "3"], ["2.compact", "3"], ()),
    "two, of which Spark reads the distance": (
        ["2.compact", "3", "5.compact", "6"],
        ["2.compact", "5.compact", "6"],
        (),
    ),
    "more": (["9.compact", "19.compact", "29.compact", "30"], ["19.compact", "29.compact", "30"], ()),
    "a hole after the newest": (["2.compact", "5.compact", "7"], ["2.compact", "5.compact", "7"], (6,)),
    "the same number twice": (["2", "2.compact", "3"], ["2.compact", "3"], ()),
    "not a log": ([".2.crc", "tmp"], [], ()),
}


@pytest.mark.parametrize(("there", "needed", "missing"), LOGS.values(), ids=LOGS.keys())
def test_a_restart_needs_the_two_newest_compact_files_and_what_follows(
    there: list[str], needed: list[str], missing: tuple[int, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    for name in there:
        (folder / name).touch()
    log = source_logs(LocalFiles(tmp_path))["sources/0"]
    assert log == tuple(f"sources/0/{name}" for name in needed)
    assert missing_in(log) == missing
