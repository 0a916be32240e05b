"""`make bench-state` in small, without HDFS: every file system gets its turns, and the figures fit together."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks import state_results
from tests.benchmarks.large_file import compare
from tests.benchmarks.state import OPTIONS, measure, merge
from tests.benchmarks.state_plan import BK, ENTRY_BYTES, FEW, FILE, StatePlan

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def plan(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> StatePlan:
    folder = tmp_path_factory.mktemp("bench")
    return StatePlan(
        roots={FILE: f"file://{folder}/files", BK: f"bk://{zookeeper}/{uuid.uuid4().hex[:10]}"},
        zookeeper=zookeeper,
        tell=lambda _: None,
        rounds=2,
        batches={FEW: 3},
        batch_warm_ups=1,
        rows=50,
        keys=100,
        file_blocks=3,
    )


@pytest.fixture(scope="module")
def found(spark: SparkSession, plan: StatePlan, tmp_path_factory: pytest.TempPathFactory) -> Any:
    gathered: dict[str, Any] = {}
    saved: list[int] = []

    def save(more: dict[str, Any]) -> None:
        merge(gathered, json.loads(json.dumps(more)))
        saved.append(len(gathered["rounds"].get(f"state_{FEW}", {}).get(BK, ())))

    save(state_results.large_file(compare(tmp_path_factory.mktemp("java"), plan, OPTIONS)))
    measure(spark, plan, save)
    assert saved == [0, 1, 2]
    return gathered


def test_the_large_file_is_on_each_file_system_and_its_rates_are_those_of_its_rounds(
    plan: StatePlan, found: Any, zookeeper: str
) -> None:
    length = 3 * ENTRY_BYTES
    assert Path(plan.roots[FILE].removeprefix("file://"), "large").stat().st_size == length
    for verb in ("write", "read"):
        rounds, rates = found["rounds"][f"large_file_{verb}"], found["mb_per_s"][verb]
        assert set(rounds) == {FILE, BK, "raw"}
        middle = {}
        for name, one in rounds.items():
            assert one["bytes"] == length
            assert len(one["seconds"]) == plan.rounds
            middle[name] = median(length / seconds for seconds in one["seconds"])
            assert rates[name]["median"] == pytest.approx(middle[name] / 1e6, rel=0.001, abs=0.1)
        assert found["ratios"][f"raw_{verb}"] == pytest.approx(middle[BK] / middle["raw"], rel=0.001, abs=0.001)


def test_each_turn_restarts_the_query_where_the_last_one_ended(plan: StatePlan, found: Any) -> None:
    turns = found["rounds"][f"state_{FEW}"]
    assert set(turns) == {FILE, BK}
    for taken in turns.values():
        assert [len(turn["batches"]) for turn in taken] == [plan.batches[FEW]] * plan.rounds
        for turn in taken:
            assert turn["restart_s"] > 0
            assert turn["state_rows"] == plan.keys
            # The state's part of a commit is a sum over tasks that run side by side, and may be longer than the batch.
            assert all(wal + log <= whole for wal, _, log, whole in turn["batches"])
            assert turn["batches_in_those_seconds"] > 0


def test_the_summary_is_made_of_the_raw_figures(found: Any) -> None:
    middle = {
        name: median(wal + state + log for turn in taken for wal, state, log, _ in turn["batches"])
        for name, taken in found["rounds"][f"state_{FEW}"].items()
    }
    commits = found[f"state_{FEW}"]["commit_ms"]
    for name, one in commits.items():
        assert one["p50"] == pytest.approx(middle[name], abs=0.1)
        assert one["p99"] >= one["p50"] > 0
    assert found["ratios"]["file_8"] == pytest.approx(middle[BK] / middle[FILE], abs=0.001)
    assert "hdfs_200" not in found["ratios"]


def test_a_batch_writes_a_name_for_each_partition_and_few_ledgers(plan: StatePlan, found: Any) -> None:
    figures = found[f"state_{FEW}"]
    # A changelog each, offsets and commits make ten; deletions may come to that, and the stretch is short.
    assert FEW / 2 < figures["zookeeper_writes_per_batch"] < 10 * FEW
    assert 0 <= figures["ledgers_per_batch"] < 1
