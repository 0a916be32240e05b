"""The driver dies by SIGKILL just before and just after each step of the protocol.

The steps come from `eos.steps.Step`, so a new step is crashed at without anybody thinking of it.
Each crash is recovered by the next driver, which dies at the next step: every one of them
starts from what the one before left behind.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from eos.steps import WRITER_STEPS, Step
from tests.crash.job import Job, expected_state, prepare_input
from tests.crash.process import account_for, run_into_crash, run_to_end

ROWS = 40
BY_DRIVER, BY_TASKS = 1_000, 0
Point = tuple[Step, str]
EVERYWHERE: list[Point] = list(product(Step, ("before", "after")))
IN_TASKS: list[Point] = list(product(WRITER_STEPS, ("before", "after")))
TAKING_OVER = (Step.TAKEOVER, Step.OWNER)
IN_LATER_BATCHES: list[Point] = [point for point in EVERYWHERE if point[0] not in TAKING_OVER]


def crash_at(
    pulsar: Any, make_topic: Any, folder: Path, points: list[Point], *, stateful: bool, turn: int, crash_in: int = 1
) -> None:
    """Die at each point in turn. Odd turns send small batches through the driver, even ones leave them to tasks."""
    files = len(points) * crash_in + 4
    prepare_input(folder / "input", files, ROWS)
    topic = make_topic("crash", partitions=3)
    rows = BY_DRIVER if turn % 2 else BY_TASKS
    job = Job(pulsar.service_url, topic, topic.rsplit("/")[-1], str(folder), stateful, rows)
    for step, phase in points:
        run_into_crash(replace(job, crash=(step.value, phase), crash_in=crash_in))
    run_to_end(job)
    result = account_for(pulsar.service_url, topic, files, ROWS, stateful=stateful)
    assert result.is_exact(), result
    if stateful:
        assert read_state(job) == expected_state(files, ROWS)


def read_state(job: Job) -> dict[str, int]:
    """Read the counts by Spark's own state data source."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.read.format("statestore").load(str(job.checkpoint)).selectExpr("key.key", "value.count").collect()
    return {row["key"]: row["count"] for row in rows}


@pytest.mark.timeout(900)
def test_each_step_once(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    crash_at(pulsar, make_topic, tmp_path, EVERYWHERE, stateful=False, turn=1)


@pytest.mark.timeout(600)
def test_each_step_of_a_task_once(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    crash_at(pulsar, make_topic, tmp_path, IN_TASKS, stateful=False, turn=2)


@pytest.mark.timeout(600)
def test_each_step_of_the_writing_in_a_batch_that_finds_producers_open(
    pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    crash_at(pulsar, make_topic, tmp_path, IN_TASKS, stateful=False, turn=1, crash_in=3)


@pytest.mark.crash
@pytest.mark.timeout(1_800)
def test_each_step_in_a_batch_that_finds_producers_open(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    crash_at(pulsar, make_topic, tmp_path, IN_LATER_BATCHES, stateful=True, turn=1, crash_in=3)


@pytest.mark.crash
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_each_step_three_times(pulsar: Any, make_topic: Any, tmp_path: Path, turn: int, stateful: bool) -> None:
    crash_at(pulsar, make_topic, tmp_path, EVERYWHERE, stateful=stateful, turn=turn)
