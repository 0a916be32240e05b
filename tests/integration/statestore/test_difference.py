"""What differs between the state in two checkpoints."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from statestore import InvalidInput, read_state, savepoints, state_difference
from statestore.cli import difference
from tests.integration.statestore.checkpoints import BATCHES

LAST = BATCHES - 1


def test_keys_come_go_and_change(checkpoints: dict[str, str], spark: SparkSession) -> None:
    uri = checkpoints["hdfs"]

    def counts(batch: int) -> dict[str, Any]:
        rows = read_state(spark, uri, batch).collect()
        return {json.dumps(row.key.asDict(recursive=True), default=str): row.value for row in rows}

    found = state_difference(spark, uri, uri, batch_a=1, batch_b=LAST).collect()
    before, after = counts(1), counts(LAST)
    assert {row.change for row in found} == {"changed"}, "batches of one window"
    assert len(found) == len(before) == len(after) == sum(before[key] != after[key] for key in before) > 0
    one = found[0]
    assert (one.operator, one.operator_name, one.store) == (0, "stateStoreSave", "default")
    assert json.loads(one.a)["value"]["count"] < json.loads(one.b)["value"]["count"]
    assert "window" in json.loads(one.key)["key"]

    uri = checkpoints["rocksdb"]  # keys of which each batch brings new ones
    new = {row.key.k for row in read_state(spark, uri, LAST).collect()} - {
        row.key.k for row in read_state(spark, uri, 1).collect()
    }
    assert new
    for change, batches in (("only in B", (1, LAST)), ("only in A", (LAST, 1))):
        found = state_difference(spark, uri, uri, batch_a=batches[0], batch_b=batches[1]).collect()
        assert {json.loads(row.key)["key"]["k"] for row in found if row.change == change} == new


def test_variables_of_a_processor_are_compared_each_by_itself(checkpoints: dict[str, str], spark: SparkSession) -> None:
    uri = checkpoints["changelog1"]
    assert state_difference(spark, uri, uri, batch_a=2, batch_b=2).isEmpty()
    found = state_difference(spark, uri, uri, batch_a=1, batch_b=2).collect()
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

    monkeypatch.setattr(difference, "session", session)
    uri, name = checkpoints["rocksdb"], f"s{uuid.uuid4().hex[:8]}"
    for batch in (1, 2):
        savepoints.create(f"{name}-{batch}", uri, batch=batch)
    try:
        with pytest.raises(InvalidInput, match="say in which tree"):
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
