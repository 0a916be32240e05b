"""Drivers with stateful queries on bk://: killed, and two for one query. Nothing is lost, doubled or damaged."""

from __future__ import annotations

import json
import shutil
import uuid
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eos.spark.capabilities import Fact
from tests.child_process import ChildProcess
from tests.soak.checks import check_checkpoints, check_ledgers, check_results, results, tree
from tests.soak.kills import launch, run_killed
from tests.waiting import until

PAIRS = [("hdfs", "deduplication"), ("changelog2", "aggregation")]
BATCHES = 7
QUERY = "aggregation"
FORMAT_2 = Fact((4, 0), "state in checkpoint format 2")
FOR_EVER = 100_000
PATIENCE_S = 180
# Of offsets or commits: both are written by a rename that must not overwrite (CheckpointFileManager.createAtomic).
TOLD_BY_SPARK = ("CONCURRENT_STREAM_LOG_UPDATE", "concurrently using")


def test_a_killed_driver_loses_and_doubles_nothing(zookeeper: str, tmp_path: Path) -> None:
    """A small sample of `make soak`."""
    root, options = tree(zookeeper, f"k{uuid.uuid4().hex[:10]}")
    out = tmp_path / "out"
    arguments = {"root": root, "out": str(out), "pairs": PAIRS, "batches": BATCHES, "options": options}
    assert len(run_killed(arguments, tmp_path / "driver.log", kills=1, seed=7)) == 1
    check_results(out, PAIRS, BATCHES)
    check_checkpoints(root, options, PAIRS)
    freed, left = check_ledgers(root, options)
    assert left >= 1, freed
    check_checkpoints(root, options, PAIRS)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    "provider",
    [
        pytest.param("hdfs", marks=pytest.mark.soak),
        pytest.param("changelog2", marks=pytest.mark.needs(FORMAT_2)),
    ],
)
def test_spark_ends_one_of_two_drivers_and_the_other_goes_on(provider: str, zookeeper: str, tmp_path: Path) -> None:
    """On one checkpoint."""
    root, options = tree(zookeeper, f"d{uuid.uuid4().hex[:10]}")
    pairs = [(provider, QUERY)]
    name = f"{provider}-{QUERY}"
    outs = [tmp_path / "first", tmp_path / "second"]
    logs = [tmp_path / "first.log", tmp_path / "second.log"]

    def arguments(out: Path, batches: int) -> dict[str, Any]:
        return {"root": root, "out": str(out), "pairs": pairs, "batches": batches, "options": options}

    with ExitStack() as stack:
        drivers = []
        for out, log in zip(outs, logs, strict=True):
            drivers.append(stack.enter_context(launch("run", arguments(out, FOR_EVER), log)))
            until(partial(began, out / name, drivers), f"no batch in {out}", PATIENCE_S)
        until(lambda: ended(drivers), "neither of two drivers ended", PATIENCE_S)
        loser = 1 if drivers[0].alive else 0
        said = drivers[loser].answer()
        assert any(words in str(said["failures"]) for words in TOLD_BY_SPARK), said
        winner = 1 - loser
        reached = max(batches_in(outs[winner] / name), default=-1)
        drivers[winner].until(
            lambda: max(batches_in(outs[winner] / name), default=-1) > reached + 2,
            "no more batches of the other",
            PATIENCE_S,
        )
    for out in outs:
        for batch in batches_in(out / name):
            given = [tuple(row) for row in json.loads((out / name / f"{batch}.json").read_text())]
            assert given == results(QUERY, batch), f"{out.name}: batch {batch} is wrong"

    # Their files are complete: the query goes on with them.
    done = max(batch for out in outs for batch in batches_in(out / name))
    for out in outs:
        shutil.copytree(out, tmp_path / "all", dirs_exist_ok=True)
    after = launch("run", arguments(tmp_path / "all", done + 4), tmp_path / "after.log")
    assert after.answer()["failures"] == []
    check_results(tmp_path / "all", pairs, done + 4)
    check_checkpoints(root, options, pairs)
    check_ledgers(root, options)


def batches_in(folder: Path) -> set[int]:
    return {int(file.stem) for file in folder.glob("*.json")}


def began(output: Path, drivers: list[ChildProcess]) -> bool:
    return bool(batches_in(output)) or ended(drivers)


def ended(drivers: list[ChildProcess]) -> bool:
    return not all(driver.alive for driver in drivers)
