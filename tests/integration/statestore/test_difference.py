"""The difference between the state in two checkpoints."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

from statestore import InvalidInput, read_state, savepoints, state_difference
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.raw_state import read_kept
from statestore.cli import difference
from statestore.cli.app import typer_app
from statestore.drills.acts.same_state import read_stores
from statestore.hadoop.file_systems import Hadoop
from statestore.rewriting.fingerprints import fingerprints
from statestore.savepoints import bookkeeper
from statestore.savepoints.store import SavepointStore
from tests.child_process import ChildProcess, python
from tests.integration.statestore.conftest import BATCHES
from tests.integration.statestore.in_step_job import settings
from tests.spark_session import quick_start
from tests.waiting import until

LAST = BATCHES - 1


def test_keys_come_go_and_change(checkpoints: dict[str, str], spark: SparkSession) -> None:
    uri = checkpoints["hdfs"]

    def counts(batch: int) -> dict[str, Any]:
        rows = read_state(uri, batch, spark=spark).collect()
        return {json.dumps(row.key.asDict(recursive=True), default=str): row.value for row in rows}

    found = state_difference(uri, uri, spark=spark, batch_a=1, batch_b=LAST).collect()
    before, after = counts(1), counts(LAST)
    assert {row.change for row in found} == {"changed"}, "batches of one window"
    assert len(found) == len(before) == len(after) == sum(before[key] != after[key] for key in before) > 0
    one = found[0]
    assert (one.operator, one.operator_name, one.store) == (0, "stateStoreSave", "default")
    assert json.loads(one.a)["value"]["count"] < json.loads(one.b)["value"]["count"]
    assert "window" in json.loads(one.key)["key"]

    uri = checkpoints["rocksdb"]  # keys that each batch brings anew
    new = {row.key.k for row in read_state(uri, LAST, spark=spark).collect()} - {
        row.key.k for row in read_state(uri, 1, spark=spark).collect()
    }
    assert new
    for change, batches in (("only in B", (1, LAST)), ("only in A", (LAST, 1))):
        found = state_difference(uri, uri, spark=spark, batch_a=batches[0], batch_b=batches[1]).collect()
        assert {json.loads(row.key)["key"]["k"] for row in found if row.change == change} == new


def test_variables_of_a_processor_are_compared_each_by_itself(checkpoints: dict[str, str], spark: SparkSession) -> None:
    uri = checkpoints["changelog1"]
    assert state_difference(uri, uri, spark=spark, batch_a=2, batch_b=2).isEmpty()
    found = state_difference(uri, uri, spark=spark, batch_a=1, batch_b=2).collect()
    stores = {row.store for row in found}
    assert stores == {"total", "totals", "sizes"}
    lists = [row for row in found if row.store == "totals"]
    assert all(len(json.loads(row.b)["list_value"]) == len(json.loads(row.a)["list_value"]) + 1 for row in lists)
    assert {row.change for row in found if row.store == "sizes"} == {"only in B"}


def test_the_command_tells_of_two_savepoints(
    checkpoints: dict[str, str],
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def session(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(difference, "spark_for", session)
    uri, name = checkpoints["rocksdb"], f"s{uuid.uuid4().hex[:8]}"
    for batch in (1, 2):
        savepoints.create(f"{name}-{batch}", uri, batch_id=batch)
    try:
        with pytest.raises(InvalidInput, match="Say in which tree"):
            difference.diff(f"{name}-1", f"{name}-2")
        with pytest.raises(SystemExit) as left:
            difference.diff(f"{name}-1", f"{name}-2", tree=uri, limit=2, as_json=True)
        said = json.loads(capsys.readouterr().out)
        assert left.value.code == 1
        assert (said["same"], len(said["shown"])) == (False, 2)
        assert said["differences"] == sum(said["stores"][0]["changes"].values()) > 2
        with pytest.raises(SystemExit) as left:
            difference.diff(f"{name}-2", uri, batch_b=2)
        assert left.value.code == 0
        with pytest.raises(SystemExit) as left:
            difference.diff(uri, f"{name}-2", batch_a=1, limit=1)
        told = capsys.readouterr()
        assert left.value.code == 1
        assert "only in B" in told.out
        assert f"1 of {said['differences']} are shown" in told.err
    finally:
        for batch in (1, 2):
            savepoints.delete(f"{name}-{batch}", uri)


MICROS = {"a": ("12:00:00.123456", "12:00:00.123457"), "b": ("12:00:00.123456", "12:00:00.123789")}
NOT_UTF8 = {"a": ("e4", "f6"), "b": ("e4", "fc")}


@pytest.mark.parametrize(
    ("given_values", "kind"),
    [
        (MICROS, "cast(concat('2024-06-01 ', text) as timestamp)"),
        (MICROS, "cast(concat('2024-06-01 ', text) as timestamp_ntz)"),
        (NOT_UTF8, "cast(unhex(text) as string)"),
    ],
    ids=["timestamp", "timestamp_ntz", "text that is not UTF-8"],
)
@pytest.mark.parametrize("column", ["key", "value"])
def test_what_json_writes_alike_is_not_the_same(
    column: str, given_values: dict[str, tuple[str, str]], kind: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Two values in each checkpoint, of which one is in both: as keys, and as the values of two keys."""
    uris = []
    for name, values in given_values.items():
        rows = [{"n": n, "text": one} for n, one in enumerate(values)]
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows").write_text("\n".join(map(json.dumps, rows)))
        given = spark.readStream.schema("n int, text string").json(f"{tmp_path}/{name}")
        given = given.selectExpr("n", f"{kind} as at")
        by, of = ("at", "n") if column == "key" else ("n", "at")
        writer = given.groupBy(by).agg(F.max(of)).writeStream.outputMode("update").format("noop")
        uris.append(f"file://{tmp_path}/checkpoint-{name}")
        writer.option("checkpointLocation", uris[-1]).trigger(availableNow=True).start().awaitTermination()
    found = state_difference(*uris, spark=spark).collect()
    changes = {"key": ["only in A", "only in B"], "value": ["changed"]}
    assert sorted(row.change for row in found) == changes[column]
    for row in found:
        assert all(json.loads(one) for one in (row.key, row.a, row.b) if one)
        assert "not_utf8" in str(row) if given_values is NOT_UTF8 else "123457" in str(row) or "123789" in str(row)
    stores = [read_stores(spark, uri, 0) for uri in uris]
    assert stores[0] != stores[1], "the drill that compares two checkpoints"
    kept = [read_kept(HadoopFiles(Hadoop.of(spark), uri), 0) for uri in uris]
    marks = [fingerprints(spark, uri, one, 0, 2) for uri, one in zip(uris, kept, strict=True)]
    assert marks[0] != marks[1], "state that was rewritten"


@pytest.mark.slow
def test_what_a_killed_command_has_left_is_named_and_removed(
    checkpoints: dict[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    """It reads a savepoint in a place of its own. As long as it lives nobody takes that away."""
    uri, name = checkpoints["rocksdb"], f"s{uuid.uuid4().hex[:8]}"
    savepoints.create(name, uri)
    store = SavepointStore.of(uri, None, spark)
    copies = store.address.at(bookkeeper.COPIES).uri
    command = python("statestore.cli.app", "diff", name, uri, "-o", "fs.bk.session.timeout.ms=12000")
    conf = [text for setting in settings() for text in ("--conf", setting)]

    def copied() -> list[str]:
        there = store.hadoop.list(copies) if store.hadoop.status(copies) is not None else []
        return [one.name for one in there if one.name.startswith(name)]

    with ChildProcess([*command, *conf], tmp_path / "diff.log", quick_start(with_bk=True)) as running:
        running.until(copied)
        running.pause()
        (reading,) = copied()
        assert {one.name: one.state for one in store.all()}[reading] == "building"
        assert reading not in bookkeeper.remove_left(store, older_than_s=-60), "its process lives"
        assert copied() == [reading]

    until(lambda: reading in [one.name for one in bookkeeper.left_behind(store)])
    said = CliRunner().invoke(typer_app, ["orphans", uri])
    assert said.exit_code == 1
    assert reading in said.stdout
    assert "statestore savepoint delete" in said.stderr
    assert bookkeeper.remove_left(store) == [], "it may have lost its session alone"
    assert copied() == [reading]
    assert bookkeeper.remove_left(store, older_than_s=-60) == [reading]
    assert copied() == []
    assert [one.name for one in store.all() if one.name.startswith(name)] == [name]
    savepoints.delete(name, uri)
