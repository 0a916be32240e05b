"""Offsets that were cut short where no checksum tells: beside those of other batches they show it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.cut import cut_of
from statestore.checkpoint.progression import wrong_offsets
from statestore.errors import CutFailed
from tests.unit.statestore.checkpoint.conftest import Copy, inspect_one


def errors(folder: Path) -> dict[str, str]:
    """What is wrong for a start, by file."""
    found = inspect_one(LocalFiles(folder)).findings
    return {str(finding.file): finding.message for finding in found if finding.severity == "error"}


@pytest.mark.parametrize("name", ["hdfs-aggregation", "changelog2-join"])
def test_offsets_cut_anywhere_are_damaged_and_nothing_is_made_of_them(name: str, copy: Copy) -> None:
    folder = copy(name)
    plan = max(int(path.name) for path in (folder / "offsets").iterdir())
    done = max(int(path.name) for path in (folder / "commits").iterdir())
    assert done == plan - 1
    for file in (folder / "offsets" / str(plan), folder / "offsets" / str(done)):
        data = file.read_bytes()
        sources = data.index(b"\n", data.index(b"\n") + 1)
        for length in (0, 1, 2, 3, sources - 1, *range(sources, len(data), 3), len(data) - 1):
            file.write_bytes(data[:length])
            assert f"offsets/{file.name}" in errors(folder), data[:length]
            if file.name == str(done):
                with pytest.raises(CutFailed, match=f"offsets/{file.name}"):
                    cut_of(LocalFiles(folder), "here")
        file.write_bytes(data)
    assert errors(folder) == {}
    cut_of(LocalFiles(folder), "here")


@pytest.mark.parametrize("length", [0, 1, 2, 3, 5])
def test_a_commit_that_is_cut_is_damaged(length: int, copy: Copy) -> None:
    """Spark takes one without its second line for one without a watermark, and would go on wrongly."""
    folder = copy("hdfs-aggregation")
    newest = max(int(path.name) for path in (folder / "commits").iterdir())
    file = folder / "commits" / str(newest)
    file.write_bytes(file.read_bytes()[:length])
    assert f"commits/{newest}" in errors(folder)


METADATA = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}})


def wrong(folder: Path, *batches: tuple[str, ...], form: int = 1) -> list[str]:
    """Write the offsets of each source for some batches; return the wrong files."""
    (folder / "offsets").mkdir()
    for number, sources in enumerate(batches):
        (folder / "offsets" / str(number)).write_text("\n".join([f"v{form}", METADATA, *sources]))
    return [gap.path for gap in wrong_offsets(LocalFiles(folder), len(batches) - 1)]


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([('{"a":1}', '{"b":1}'), ('{"a":2}', '{"b":2}')], []),
        ([('{"a":1}', '{"b":1}'), ('{"a":2}',)], ["offsets/1"]),  # cut after a whole line
        ([('{"a":1}', "-"), ('{"a":2}', "-")], []),
        ([('{"a":1}', '{"b":1}'), ('{"a":2}', '{"b"')], ["offsets/1"]),
        ([('{"a":1',)], ["offsets/0"]),  # there is none to compare with, and it begins as JSON
        ([("text{1",), ("text{2",)], []),  # a source's offset may be any text
        ([("{text 1",), ("{text 2",)], []),
        ([("98",), ("105",)], []),
        ([("98",), ("10",)], ["offsets/1"]),  # 105, cut
        ([("98",), ("98",)], []),
        ([('{"logOffset":1}',), ('{"logOffset":2}',)], []),
        *(
            ([('{"logOffset":1}',), (f'{{"logOffset":{odd}}}',)], ["offsets/1"])
            for odd in ("null", '"2"', "1e9", "true")
        ),
    ],
)
def test_offsets_beside_those_of_other_batches(
    batches: list[tuple[str, ...]], expected: list[str], tmp_path: Path
) -> None:
    assert wrong(tmp_path, *batches) == expected


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([('x:{"a":1}', 'y:{"b":1}'), ('x:{"a":2}',)], []),
        ([("x:98", "y:5"), ("y:6",)], []),  # x was taken away
        ([("x:98", "y:5"), ("y:6", "x:99")], []),
        ([("x:98",), ("new:0", "x:99")], []),
        ([("x:text",), ('new:{"b":1}', "x:text 2")], []),
        ([("x:98", "y:5"), ("y:6", "x:9")], ["offsets/1"]),  # 99, cut
        ([('x:{"a":1}',), ('y:{"b":1}', 'x:{"a"')], ["offsets/1"]),
    ],
)
def test_offsets_of_sources_with_names_are_compared_by_name(
    batches: list[tuple[str, ...]], expected: list[str], tmp_path: Path
) -> None:
    """Sources may come, go, and change their order."""
    assert wrong(tmp_path, *batches, form=2) == expected


@pytest.mark.parametrize(("noted", "expected"), [("0", []), ("1", ["offsets/0"])])
def test_the_first_offsets_beside_the_folders_of_the_sources(noted: str, expected: list[str], tmp_path: Path) -> None:
    """There is no other batch to compare with, and a source beyond the last of the offsets has noted something."""
    (tmp_path / "sources" / noted).mkdir(parents=True)
    assert wrong(tmp_path, ('{"a":1}',)) == expected
