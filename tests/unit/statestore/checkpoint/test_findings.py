"""The remedies of findings. A file of an unknown version is not to be removed, nor a committed batch's offsets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.changes import read_changes
from statestore.checkpoint.compression import compress
from statestore.checkpoint.findings import RESTORE
from statestore.checkpoint.operators import check_schema
from statestore.errors import Damaged, UnknownVersion
from tests.unit.statestore.checkpoint.conftest import Copy, inspect_one


def first_line(file: Path, version: str) -> None:
    _, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(version.encode() + b"\n" + rest)


def newest(folder: Path, log: str) -> Path:
    return max((folder / log).iterdir(), key=lambda path: int(path.name))


def offsets(folder: Path) -> str:
    first_line(newest(folder, "offsets"), "v3")
    return "offsets/8"


def commits(folder: Path) -> str:
    done = newest(folder, "commits")
    (folder / "offsets" / "8").unlink()
    first_line(done, "v4")
    return "commits/7"


def operator(folder: Path) -> str:
    first_line(folder / "state/0/_metadata/metadata", "v3")
    return "state/0/_metadata"


def operators_folder(folder: Path) -> str:
    (folder / "state/0/_metadata/v3").mkdir()
    return "state/0/_metadata"


def schema(folder: Path) -> str:
    file = folder / "state/0/0/_metadata/schema"
    file.write_bytes(b"\x00\x02v4" + file.read_bytes()[4:])
    return "state/0/0/_metadata/schema"


@pytest.mark.parametrize("change", [offsets, commits, operator, operators_folder, schema])
def test_it_is_said_to_be_unknown_and_nothing_is_to_be_removed(change: Callable[[Path], str], copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    path = change(folder)
    found = inspect_one(LocalFiles(folder)).findings
    assert {finding.severity for finding in found} == {"unknown"}, found
    versions = [finding for finding in found if finding.kind == "version"]
    assert path in {finding.file for finding in versions}
    for finding in versions:
        assert "unknown version" in finding.message
        assert "damaged" not in finding.message
        assert "emove" not in finding.remedy


AGAIN = "Remove it, if the sink may see batch 7 again. Spark then runs it again."
PLANS = "Remove it, if the sink may see other rows in this batch. It is not committed, and Spark plans it again."


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize(
    ("planned", "path", "remedy"),
    [
        (False, "offsets/7", RESTORE),
        (False, "offsets/6", RESTORE),
        (False, "commits/7", AGAIN),
        (False, "commits/6", RESTORE),
        (True, "offsets/8", PLANS),
        (True, "offsets/7", RESTORE),
        (True, "offsets/6", RESTORE),
        (True, "commits/7", RESTORE),
        (True, "commits/6", RESTORE),
    ],
)
def test_a_committed_batch_runs_again_only_where_the_remedy_says_so(
    planned: bool, path: str, remedy: str, batches: int, copy: Copy
) -> None:
    """Batches 0 to 7 are committed, and 8 is planned or not."""
    folder = copy("hdfs-aggregation")
    if not planned:
        (folder / "offsets" / "8").unlink()
    (folder / path).write_bytes((folder / path).read_bytes()[:-9])
    found = inspect_one(LocalFiles(folder), batches).findings
    assert {finding.remedy for finding in found if finding.file == path} <= {remedy}
    if batches > 1 or path[-1] in "78":
        assert path in {finding.file for finding in found}


def test_a_changelog_of_a_newer_version() -> None:
    for version in ("5", "9"):
        with pytest.raises(UnknownVersion, match=f"v{version}"):
            read_changes(compress(b"\x00\x02v" + version.encode() + b"\x00" * 9, "lz4"))


def test_a_schema_of_a_newer_version() -> None:
    with pytest.raises(UnknownVersion, match="v4"):
        check_schema(b"\x00\x02v4")
    with pytest.raises(Damaged):
        check_schema(b"\x00\x02x4")
