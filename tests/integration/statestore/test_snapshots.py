"""What a checkpoint on bk:// holds, listed and read back as rows."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from typer.testing import CliRunner

import statestore
from statestore.cli.app import typer_app
from tests.integration.statestore.checkpoints import BATCHES
from tests.soak.queries import ROWS


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
    counts = statestore.read_state(spark, checkpoints["hdfs"], batch_id=BATCHES - 1)
    assert sum(row["value"]["count"] for row in counts.collect()) == BATCHES * ROWS
    first = statestore.read_state(spark, checkpoints["hdfs"], batch_id=0)
    assert sum(row["value"]["count"] for row in first.collect()) == ROWS
    sides = statestore.read_state(spark, checkpoints["changelog2"], join_side="left", batch_id=1)
    assert {row["value"]["k"] for row in sides.collect()} <= set(range(2 * ROWS))
    totals = statestore.read_state(spark, checkpoints["changelog1"], state_variable="total", batch_id=BATCHES - 1)
    assert sum(row["value"]["n"] for row in totals.collect()) == sum(range(BATCHES * ROWS))
    with pytest.raises(statestore.InvalidInput, match="not both"):
        statestore.read_state(spark, checkpoints["changelog2"], join_side="left", store_name="left-keyToNumValues")


def test_the_command_line(checkpoints: dict[str, str]) -> None:
    said = CliRunner().invoke(typer_app, ["snapshots", checkpoints["hdfs"], "--json"])
    assert said.exit_code == 0
    found = json.loads(said.stdout)
    assert len(found["stores"]) == 2
    assert found["loadable"][: BATCHES - 1] == list(range(BATCHES - 1))
    table = CliRunner().invoke(typer_app, ["snapshots", checkpoints["hdfs"]])
    assert "stateStoreSave" in table.stdout
    assert "loadable" in table.stdout
