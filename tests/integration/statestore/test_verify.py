"""`statestore.verify` on checkpoints that Spark writes to bk:// and to local disk: clean, or to the point.

And `statestore.snapshots`, which lists what they hold: a process takes half a minute to make those on bk://.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import statestore
from statestore.bk import tree
from statestore.checkpoint import committed, needs_of
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.findings import CheckpointFinding
from statestore.cli.app import typer_app
from statestore.hadoop.file_systems import Hadoop
from tests.integration.statestore.conftest import BATCHES
from tests.soak.queries import ROWS, run

CHANGES = {"hdfs": "delta", "rocksdb": "zip", "changelog1": "changelog", "changelog2": "changelog"}


def wrong(uri: str, **options: Any) -> list[CheckpointFinding]:
    """The faults, for a start or for an older batch only."""
    return [finding for finding in statestore.verify(uri, **options).findings if finding.kind != "note"]


def needed(uri: str, *kinds: str) -> str:
    """The last file of one of these kinds that the last batches need, relative to the checkpoint.

    The newest batch alone may need no change at all: Spark's maintenance has just made a snapshot of it.
    """
    files = HadoopFiles(Hadoop.of(), uri)
    for batch in reversed(committed(files)[-2:]):
        found = [path for path, need in needs_of(files, batch).files.items() if need.kind in kinds]
        if found:
            return found[-1]
    raise AssertionError(f"neither of the last two batches of {uri} needs a {' or a '.join(kinds)}")


@contextmanager
def damaged(uri: str, path: str, change: Callable[[bytes], bytes] | None) -> Iterator[None]:
    """Change a file, or take it away, and put it back."""
    hadoop = Hadoop.of()
    data = hadoop.read(f"{uri}/{path}")
    hadoop.delete(f"{uri}/{path}")
    if change is not None:
        hadoop.write(f"{uri}/{path}", change(data))
    yield
    hadoop.write(f"{uri}/{path}", data, overwrite=True)


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


@pytest.mark.parametrize("provider", CHANGES)
def test_a_healthy_checkpoint_is_clean(provider: str, checkpoints: dict[str, str]) -> None:
    report = statestore.verify(checkpoints[provider], operators=1)
    assert report.findings == ()
    assert report.ok
    unsaid = statestore.verify(checkpoints[provider])
    assert unsaid.answer == ("yes" if provider == "changelog2" else "unknown"), "format 1 says nothing of their number"
    assert len(report.batches) == 2
    assert report.files > 10
    assert report.copies is not None
    assert report.copies >= 1
    assert report.query_id == statestore.snapshots(checkpoints[provider]).query_id


def test_batches_and_stores(checkpoints: dict[str, str]) -> None:
    found = statestore.snapshots(checkpoints["changelog2"])
    now = time.time() * 1000
    done = [batch for batch in found.batches if batch.committed]
    assert [batch.id for batch in done] == list(range(len(done)))
    assert len(done) >= BATCHES
    assert all(now - 7_200_000 < batch.planned_ms <= batch.committed_ms <= now for batch in done)
    assert all(batch.sources[0] for batch in done)
    assert {(store.partition, store.store) for store in found.stores} == {
        (partition, f"{side}-{kind}")
        for partition in (0, 1)
        for side in ("left", "right")
        for kind in ("keyToNumValues", "keyWithIndexToValue")
    }
    assert {store.operator_name for store in found.stores} == {"symmetricHashJoin"}
    for store in found.stores:
        assert store.versions == tuple(batch.id + 1 for batch in done)
        assert store.bytes > 0
        assert store.written_ms <= now
    assert found.loadable == tuple(batch.id for batch in done)


def test_state_is_read_back(spark: Any, checkpoints: dict[str, str]) -> None:
    counts = statestore.read_state(checkpoints["hdfs"], spark=spark, batch_id=BATCHES - 1)
    assert sum(row["value"]["count"] for row in counts.collect()) == BATCHES * ROWS
    first = statestore.read_state(checkpoints["hdfs"], spark=spark, batch_id=0)
    assert sum(row["value"]["count"] for row in first.collect()) == ROWS
    sides = statestore.read_state(checkpoints["changelog2"], spark=spark, join_side="left", batch_id=1)
    assert {row["value"]["k"] for row in sides.collect()} <= set(range(2 * ROWS))
    totals = statestore.read_state(checkpoints["changelog1"], spark=spark, state_variable="total", batch_id=BATCHES - 1)
    assert sum(row["value"]["n"] for row in totals.collect()) == sum(range(BATCHES * ROWS))
    with pytest.raises(statestore.InvalidInput, match="not both"):
        statestore.read_state(
            checkpoints["changelog2"], spark=spark, join_side="left", store_name="left-keyToNumValues"
        )


def test_the_command_shows_batches_and_stores(checkpoints: dict[str, str]) -> None:
    said = CliRunner().invoke(typer_app, ["snapshots", checkpoints["hdfs"], "--json"])
    assert said.exit_code == 0
    found = json.loads(said.stdout)
    assert len(found["stores"]) == 2
    assert found["loadable"][: BATCHES - 1] == list(range(BATCHES - 1))
    table = CliRunner().invoke(typer_app, ["snapshots", checkpoints["hdfs"]])
    assert "stateStoreSave" in table.stdout
    assert "loadable" in table.stdout


@pytest.mark.parametrize("provider", CHANGES)
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_damaged_changes_are_named(provider: str, damage: str, checkpoints: dict[str, str]) -> None:
    uri = checkpoints[provider]
    path = needed(uri, CHANGES[provider])
    change = {"missing": None, "cut": lambda data: data[:-9], "flipped": flipped}[damage]
    with damaged(uri, path, change):
        found = wrong(uri)
    assert path in {finding.file for finding in found}, found
    # Without changelogs an earlier snapshot is looked at next, and what would lie between it and the lost one.
    assert len({finding.file for finding in found}) == 1
    assert {finding.kind for finding in found} == {"missing" if damage == "missing" else "damaged"}
    assert all(finding.remedy and finding.batches for finding in found)
    assert wrong(uri) == []


@pytest.mark.parametrize("provider", ["rocksdb", "changelog1", "changelog2"])
def test_a_missing_table_is_named(provider: str, checkpoints: dict[str, str]) -> None:
    path = needed(checkpoints[provider], "table")
    with damaged(checkpoints[provider], path, None):
        (finding,) = wrong(checkpoints[provider])
    assert (finding.kind, finding.file) == ("missing", path)


@pytest.mark.parametrize("provider", CHANGES)
def test_a_missing_commit_is_named(provider: str, checkpoints: dict[str, str]) -> None:
    uri = checkpoints[provider]
    last = committed(HadoopFiles(Hadoop.of(), uri))[-1]
    with damaged(uri, f"commits/{last - 1}", None):
        (finding,) = wrong(uri)
    assert (finding.kind, finding.file) == ("log", f"commits/{last - 1}")


@pytest.fixture
def own(spark: Any, own_tree: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """A tree of names of the test's own that the session knows, too."""
    root, options = own_tree
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in options.items():
        conf.set(name, value)
    yield root, options
    for name in options:
        conf.unset(name)


def test_a_ledger_that_is_gone_is_named(spark: Any, own: tuple[str, dict[str, str]]) -> None:
    """All copies of the entries are gone: the ledger and each file that was in it are named."""
    root, options = own
    uri = f"{root}query"
    run(spark, "hdfs", "deduplication", uri, 3)
    assert wrong(uri, options=options) == []
    record = tree.files(Hadoop.of(spark, options), statestore.BkAddress.parse(uri, options))["/query/commits/2"]
    jvm = Hadoop.of(spark, options).jvm
    configuration = jvm.org.apache.bookkeeper.conf.ClientConfiguration()
    configuration.setMetadataServiceUri(next(iter(options.values())))
    client = jvm.org.apache.bookkeeper.client.BookKeeper(configuration)
    client.deleteLedger(record.ledger)
    client.close()
    found = wrong(uri, options=options)
    assert {finding.ledger for finding in found} == {record.ledger}
    assert "commits/2" in {finding.file for finding in found}


def test_hadoops_own_checksums_of_local_files(spark: Any, tmp_path: Path) -> None:
    run(spark, "changelog2", "aggregation", str(tmp_path), 5)
    assert statestore.verify(str(tmp_path)).findings == ()
    assert statestore.verify(f"file://{tmp_path}").copies is None
    # Without a snapshot, which Spark's maintenance makes when it comes round, no table is needed yet.
    for kinds in (("table", "changelog"), ("offsets",)):
        file = tmp_path / needed(str(tmp_path), *kinds)
        data = file.read_bytes()
        file.write_bytes(flipped(data))
        (finding,) = wrong(str(tmp_path))
        assert finding.kind == "damaged"
        assert finding.file is not None
        assert str(file.relative_to(tmp_path)).startswith(finding.file)
        file.write_bytes(data)
    # Spark goes on without an operator's metadata in their first version, so this is told by the way.
    file = tmp_path / needed(str(tmp_path), "operator")
    file.write_bytes(flipped(file.read_bytes()))
    (note,) = statestore.verify(str(tmp_path)).findings
    assert (note.severity, note.kind) == ("warning", "note")
    assert "state/0 has metadata that can't be read" in note.message


def test_the_command_line(checkpoints: dict[str, str]) -> None:
    uri = checkpoints["changelog1"]
    command = [sys.executable, "-m", "statestore.cli.app", "verify", uri, "--operators", "1", "--json"]
    clean = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert clean.returncode == 0, clean.stderr
    assert json.loads(clean.stdout)["ok"] is True
    path = needed(uri, "offsets")
    with damaged(uri, path, None):
        found = CliRunner().invoke(typer_app, ["verify", uri])
    assert found.exit_code == 1
    assert path in found.stdout
    assert "1 error," in found.stderr
    with pytest.raises(statestore.NotFound, match="There is no checkpoint"):
        statestore.verify(uri + "-not")
