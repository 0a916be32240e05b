"""A snapshot that can't be loaded is an error only where Spark can't do without it.

tests/integration/statestore/test_going_on.py asks Spark itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles, committed, needs_of
from statestore.checkpoint.findings import CheckpointFinding
from statestore.checkpoint.needs import StoreNeeds
from tests.unit.statestore.checkpoint.conftest import Copy, flip, inspect_one, needed

REPAIRED = ["hdfs-aggregation", "changelog1-transform", "changelog2-join", "changelog2-transform"]


def severities(folder: Path) -> set[str]:
    return {finding.severity for finding in inspect_one(LocalFiles(folder)).findings}


def store(folder: Path) -> StoreNeeds:
    """The store that has the last snapshot which the last batch needs."""
    files = LocalFiles(folder)
    return [store for store in needs_of(files, committed(files)[-1]).stores if store.chain.base][-1]


def base(folder: Path) -> Path:
    found = store(folder).chain.base
    assert found is not None
    return folder / found.path


def tables_gone(folder: Path) -> None:
    for table in (folder / "SSTs").iterdir():
        table.unlink()


@pytest.mark.parametrize("name", REPAIRED)
def test_a_damaged_snapshot_is_a_warning_that_says_where_spark_begins(name: str, copy: Copy) -> None:
    folder = copy(name)
    before = base(folder)
    before.write_bytes(before.read_bytes()[:40])
    (finding,) = {finding.message: finding for finding in inspect_one(LocalFiles(folder)).findings}.values()
    assert (finding.severity, finding.file) == ("warning", str(before.relative_to(folder)))
    begins = {"hdfs-aggregation": "an empty store", "changelog2-join": "3_"}.get(name, "/4")
    assert "Spark goes on without it, from " in finding.remedy
    assert begins in finding.remedy
    assert "autoSnapshotRepair.enabled=false" in finding.remedy


@pytest.mark.parametrize("name", REPAIRED)
def test_a_change_since_the_snapshot_before_is_needed_then(name: str, copy: Copy) -> None:
    folder = copy(name)
    snapshot = store(folder)
    change = next(
        file.path
        for file in snapshot.without(LocalFiles(folder), str(base(folder).relative_to(folder))).files
        if not file.is_snapshot and file.version < snapshot.chain.version - 1
    )
    flip(base(folder))
    assert severities(folder) == {"warning"}
    data = (folder / change).read_bytes()
    (folder / change).write_bytes(data[:-10])
    (folder / f"{change}.crc").unlink(missing_ok=True)
    assert "error" in severities(folder)
    (folder / change).unlink()
    assert "error" in severities(folder)


@pytest.mark.parametrize("name", REPAIRED[1:])
def test_a_table_of_one_snapshot_is_a_warning(name: str, copy: Copy) -> None:
    folder = copy(name)
    (folder / store(folder).tables[-1]).unlink()
    assert severities(folder) == {"warning"}


@pytest.mark.parametrize("name", [name for name in REPAIRED if name.endswith("transform")])
def test_the_tables_of_all_snapshots_are_needed_where_there_are_column_families(name: str, copy: Copy) -> None:
    folder = copy(name)
    tables_gone(folder / store(folder).folder)
    assert "error" in severities(folder)


def test_without_a_snapshot_that_can_be_loaded_all_changes_are_needed(copy: Copy) -> None:
    """In format 2 as in format 1, though a changelog's lineage ends at a snapshot. Once Spark has failed over one,
    it follows the lineage down to the first version; where it finds none it does not.
    """
    folder = copy("changelog2-join")
    of = folder / store(folder).folder
    tables_gone(of)
    (finding, *_) = inspect_one(LocalFiles(folder)).findings
    assert finding.severity == "warning"
    assert "from an empty store" in finding.remedy
    (first,) = of.glob("1_*.changelog")
    first.rename(of / "elsewhere")
    assert "error" in severities(folder)
    (of / "elsewhere").rename(first)
    for snapshot in of.glob("*.zip"):
        snapshot.unlink()
    assert "error" in severities(folder)


def test_without_changelogs_every_snapshot_is_needed(copy: Copy) -> None:
    folder = copy("rocksdb-deduplication")
    flip(needed(folder, "zip"))
    assert "error" in severities(folder)


def test_column_families_come_from_a_snapshot_only(copy: Copy) -> None:
    """All changes are there, and Spark fails over the first: it knows no family to put it into."""
    folder = copy("changelog1-transform")
    for file in (folder / "state" / "0" / "0").glob("*.zip"):
        file.unlink()
    (finding,) = [one for one in inspect_one(LocalFiles(folder)).findings if one.severity == "error"]
    assert finding.file == "state/0/0/*.zip"
    assert "column families" in finding.message


def test_what_stands_beside_the_snapshot_stays_an_error(copy: Copy) -> None:
    folder = copy("changelog1-transform")
    flip(base(folder))
    change = needed(folder, "changelog")
    change.write_bytes(b"")
    found: list[CheckpointFinding] = [
        one for one in inspect_one(LocalFiles(folder)).findings if one.severity == "error"
    ]
    assert str(change.relative_to(folder)) in {one.file for one in found}
