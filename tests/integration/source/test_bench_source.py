"""`make bench-source` in small: every contender reads the same rows, and the figures fit together. Nothing is timed."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.benchmarks import column_reads, one_row, readers, segment_reads, typed_reads
from tests.benchmarks.source import measure
from tests.benchmarks.source_plan import PARTITIONS, Case, SourcePlan
from tests.benchmarks.source_results import AIMS, SEGMENTS
from tests.benchmarks.state import merge

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def plan(pulsar: Any) -> SourcePlan:
    return SourcePlan(
        broker=pulsar,
        tell=lambda _: None,
        stem=f"smoke-{uuid.uuid4().hex[:8]}",
        large=Case("entries_of_1000", 1_000, 4_000),
        small=Case("entries_of_10", 10, 400),
        typed_rows=2_000,
        rounds=1,
        warm_ups=0,
        batches=2,
        batch_warm_ups=1,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("java")


@pytest.fixture(scope="module")
def found(spark: SparkSession, plan: SourcePlan, folder: Path) -> Any:
    gathered: dict[str, Any] = {}
    measure(spark, plan, folder, lambda more: merge(gathered, json.loads(json.dumps(more))))
    return gathered


def test_every_ratio_is_there_and_made_of_the_raw_figures(plan: SourcePlan, found: Any) -> None:
    assert found["ratios"].keys() == found["wall_ratios"].keys() == AIMS.keys()
    for case, suffix in ((plan.large, ""), (plan.small, "_small")):
        cost = {}
        for name, one in found["rounds"][case.name].items():
            assert one["rows"] == case.rows
            assert len(one["seconds"]) == len(one["cpu_seconds"]) == plan.rounds
            cost[name] = median(one["cpu_seconds"])
        client, java = (found["ratios"][name + suffix] for name in (readers.CLIENT, readers.JAVA))
        assert client == pytest.approx(cost[readers.CLIENT] / cost[readers.OURS], rel=0.1)
        assert java == pytest.approx(cost[readers.OURS] / cost[readers.JAVA], rel=0.1)


def test_typed_values_are_compared_with_the_same_values_as_bytes(plan: SourcePlan, found: Any) -> None:
    rounds = found["rounds"][typed_reads.NAME]
    kinds = {name + suffix for name in typed_reads.TYPED for suffix in ("", typed_reads.AS_BYTES)}
    assert rounds.keys() == kinds | {name + typed_reads.FROM_MEMORY for name in kinds}
    assert found["ratios_without_decoding"].keys() == {f"{name}_over_bytes" for name in typed_reads.TYPED}
    assert {one["rows"] for one in rounds.values()} == {plan.typed_rows}


def test_few_columns_are_compared_with_every_column_of_the_same_topic(plan: SourcePlan, found: Any) -> None:
    rounds = found["rounds"][column_reads.NAME]
    assert rounds.keys() == {column_reads.EVERY, *column_reads.FEW}
    assert {one["rows"] for one in rounds.values()} == {plan.typed_rows}


def test_history_is_read_both_ways_and_the_cpu_of_each_process_is_there(plan: SourcePlan, found: Any) -> None:
    for case in (plan.large, plan.small):
        ways = found["rounds"][f"{SEGMENTS}_{case.name}"]
        assert ways.keys() == {segment_reads.BROKERS, segment_reads.BOOKIES, segment_reads.IDLE}
        for one in ways.values():
            assert one["rows"] == case.rows
            assert len(one["brokers_cpu_seconds"]) == len(one["bookies_cpu_seconds"]) == plan.rounds


def test_a_batch_of_one_row_is_compared_turn_by_turn(plan: SourcePlan, found: Any) -> None:
    batch = found["batch_ms"]
    assert {name: [len(turn) for turn in turns] for name, turns in batch["batches"].items()} == dict.fromkeys(
        (one_row.OURS, one_row.EMPTY, one_row.RATE), [plan.batches] * plan.rounds
    )
    ours, empty = (median(batch["batches"][name][0]) for name in (one_row.OURS, one_row.EMPTY))
    assert batch["added_p50"] == pytest.approx(ours - empty, abs=0.1)


def test_all_contenders_read_the_same_rows(spark: SparkSession, plan: SourcePlan, found: Any, folder: Path) -> None:
    topic = f"persistent://public/default/{plan.stem}-{plan.small.name}"
    read = readers.readings(spark, plan.broker, topic, plan.small.rows // PARTITIONS, folder)
    assert [one.run() for one in read] == [plan.small.rows] * 4
    rows = {
        one.name: one.df.agg(F.count("value"), F.sum(F.xxhash64("value", "__key") % 1_000_003)).first()
        for one in read
        if one.name != readers.READY
    }
    assert len(rows) == 3
    assert len(set(rows.values())) == 1
