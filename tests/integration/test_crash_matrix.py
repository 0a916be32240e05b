"""The driver dies by SIGKILL just before and just after each step of the protocol.

The steps come from `eos.steps.Step`, so a new step is crashed at as soon as it is there.
Each crash is recovered by the next driver, which dies at the next step: every one of them
starts from what the one before left behind.

A driver that dies in its first batch opens producers there; in its third, those of the second are open still.

Just after most steps the broker has seen what it has seen just before the next one. The two tests that each run of the
suite has die at one of these two moments; those marked `crash` die at both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eos.spark.capabilities import Capability, has
from eos.steps import PLAIN_STEPS, WRITER_STEPS, Step
from tests.crash.job import Job, expected_state, prepare
from tests.crash.process import account_for, run_into_crash, run_to_end
from tests.topic_commands import compact, table_view

pytestmark = pytest.mark.slow

ROWS = 40
PARTITIONS = 3
BY_DRIVER, BY_TASKS = 1_000, 0
Point = tuple[Step, str]
EVERYWHERE: list[Point] = list(product(Step, ("before", "after")))
TAKING_OVER = (Step.TAKEOVER, Step.OWNER)
FOLLOWED = (Step.TAKEOVER, Step.OWNER, Step.FIRST_SEND)
"""After these the broker sees more before the next step: the log's first transaction, the end of the one that the
driver before has left open, further frames."""


def apart(steps: Sequence[Step]) -> list[Point]:
    """Each moment around the steps in which the broker has seen something else than in the one before."""
    points: list[Point] = []
    for step in steps:
        points.append((step, "before"))
        if step in FOLLOWED or step is steps[-1]:
            points.append((step, "after"))
    return points


def first_batch(points: list[Point]) -> dict[Point, int]:
    """Die in the first batch of a run."""
    return dict.fromkeys(points, 1)


def third_batch(points: list[Point]) -> dict[Point, int]:
    """Die in the third batch of a run, but while taking over, which comes before any."""
    return {point: 3 for point in points if point[0] not in TAKING_OVER}


def crash_at(
    pulsar: Any,
    make_topic: Any,
    folder: Path,
    points: dict[Point, int],
    *,
    turn: int,
    spark: SparkSession | None = None,
) -> None:
    """Die at each point in turn, in the batch of the run that it says.

    Odd turns send small batches through the driver, even ones leave them to tasks. With `spark`, which reads the state
    at the end, the job is a stateful one. Its topic is a live table then, and is compacted half-way and at the end.
    """
    stateful = spark is not None
    files = sum(points.values()) + 4
    topic = make_topic("crash", partitions=PARTITIONS)
    small = BY_DRIVER if turn % 2 else BY_TASKS
    job = prepare(pulsar.service_url, topic, folder, files, ROWS, stateful=stateful, small_batch_rows=small)
    partitions = [f"{topic}-partition-{number}" for number in range(PARTITIONS)] if stateful else []
    for number, ((step, phase), batch) in enumerate(points.items()):
        run_into_crash(replace(job, crash=(step.value, phase), crash_in=batch))
        if number == len(points) // 2:
            compact_all(pulsar, partitions)
    run_to_end(job)
    result = account_for(pulsar.service_url, topic, files, ROWS, stateful=stateful)
    assert result.is_exact(), result
    if spark is not None:
        state = expected_state(files, ROWS)
        if has(Capability.READS_STATE):  # else the table's rows are all that tells of it
            assert read_state(spark, job) == state
        compact_all(pulsar, partitions)
        assert table_view(pulsar.service_url, *partitions) == {key: f"{key}={count}" for key, count in state.items()}


def compact_all(pulsar: Any, partitions: Sequence[str]) -> None:
    for partition in partitions:
        compact(pulsar.admin_url, partition)


def read_state(spark: SparkSession, job: Job) -> dict[str, int]:
    """Read the counts by Spark's own state data source."""
    rows = spark.read.format("statestore").load(str(job.checkpoint)).selectExpr("key.key", "value.count").collect()
    return {row["key"]: row["count"] for row in rows}


@pytest.mark.timeout(3_600)
def test_each_step_once(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    """Writers die with producers that an earlier batch opened; the next test has those that open their own."""
    points = first_batch(apart(list(Step))) | third_batch(apart(WRITER_STEPS))
    crash_at(pulsar, make_topic, tmp_path, points, turn=1)


@pytest.mark.crash
@pytest.mark.timeout(3_600)
def test_each_step_of_a_task_once(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    crash_at(pulsar, make_topic, tmp_path, first_batch(apart(WRITER_STEPS)), turn=2)


def crash_a_job_at(pulsar: Any, make_topic: Any, folder: Path, points: Sequence[Point]) -> None:
    """Die at each point in turn in one job of `eos.write`; only the last may leave it committed."""
    topic = make_topic("crash", partitions=3)
    job = prepare(pulsar.service_url, topic, folder, 1, ROWS, by_id=True)
    for step, phase in points:
        run_into_crash(replace(job, crash=(step.value, phase)))
    first, second = run_to_end(job).output.splitlines()
    assert second == f"wrote False {ROWS}"
    assert points[-1] in IN_DOUBT or first == f"wrote {points[-1] not in COMMITTED} {ROWS}"
    result = account_for(pulsar.service_url, topic, 1, ROWS)
    assert result.is_exact(), result


COMMITTED: list[Point] = [(Step.END_ANSWERED, "after"), (Step.RETURN, "before"), (Step.RETURN, "after")]
"""Where a job that dies is known to be committed."""
IN_DOUBT: list[Point] = [(Step.END_SENT, "after"), (Step.END_ANSWERED, "before")]
"""Where nobody knows it."""


@pytest.mark.timeout(3_600)
def test_a_job_that_dies_before_and_after_its_commit(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    crash_a_job_at(pulsar, make_topic, tmp_path, [(Step.MARKER, "after"), (Step.RETURN, "before")])


@pytest.mark.crash
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("last", [*IN_DOUBT, *COMMITTED], ids=lambda point: f"{point[0]} {point[1]}")
def test_a_job_that_dies_at_each_step(pulsar: Any, make_topic: Any, tmp_path: Path, last: Point) -> None:
    """A job can be committed once, so each of the last moments has a job of its own, and the first one all others."""
    before = [point for point in EVERYWHERE if point not in (*IN_DOUBT, *COMMITTED)]
    crash_a_job_at(pulsar, make_topic, tmp_path, [*(before if last == IN_DOUBT[0] else ()), last])


TWICE: dict[Point, range] = {
    (Step.FIRST_SEND, "before"): range(1),
    (Step.FIRST_SEND, "after"): range(ROWS + 1),
    (Step.ALL_SENT, "before"): range(ROWS + 1),
    (Step.ALL_SENT, "after"): range(1, ROWS + 1),
    (Step.CLOSE_PRODUCERS, "before"): range(1, ROWS + 1),
    (Step.CLOSE_PRODUCERS, "after"): range(1, ROWS + 1),
    (Step.RETURN, "before"): range(ROWS, ROWS + 1),
    (Step.RETURN, "after"): range(ROWS, ROWS + 1),
}
"""How many rows of its batch a driver without transactions that dies there may leave: they come once more.

Another task of the batch may have come as far as it likes, or not have begun.
"""
WHOLE = (Step.ALL_SENT, Step.CLOSE_PRODUCERS)
"""When the driver itself has come there, it has sent the whole batch."""


def die_at(job: Job, points: Sequence[tuple[Step, str, int]]) -> None:
    """Die at each point in turn, in a batch of the size limit that it comes with.

    The first run's first batch goes by tasks, whatever its size, so a first point by the driver is met in its second.
    """
    for number, (step, phase, small) in enumerate(points):
        crash_in = 2 if number == 0 and small == BY_DRIVER else 1
        run_into_crash(replace(job, crash=(step.value, phase), crash_in=crash_in, small_batch_rows=small))


def crash_at_least_once_at(pulsar: Any, make_topic: Any, folder: Path, points: Sequence[tuple[Step, str, int]]) -> None:
    """Die at each point in turn: nothing is lost, and few rows double."""
    files = len(points) + 4
    topic = make_topic("crash", partitions=PARTITIONS)
    job = prepare(pulsar.service_url, topic, folder, files, ROWS, options={"guarantee": "at-least-once"})
    die_at(job, points)
    least = most = 0
    for step, phase, small in points:
        may = TWICE[step, phase]
        whole = small == BY_DRIVER and (step, phase) != (Step.ALL_SENT, "before") and step in WHOLE
        least += ROWS if whole else may.start
        most += may.stop - 1
    run_to_end(job)
    result = account_for(pulsar.service_url, topic, files, ROWS)
    assert result.duplicated is not None, result
    assert (result.lost, result.unexpected, result.found) == (0, 0, files * ROWS + result.duplicated), result
    assert least <= result.duplicated <= most, result


@pytest.mark.timeout(3_600)
def test_at_least_once_loses_nothing(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    points = [
        (Step.ALL_SENT, "after", BY_DRIVER),
        (Step.FIRST_SEND, "after", BY_TASKS),
    ]
    crash_at_least_once_at(pulsar, make_topic, tmp_path, points)


@pytest.mark.crash
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("small", [BY_DRIVER, BY_TASKS], ids=["driver", "tasks"])
def test_at_least_once_loses_nothing_at_any_step(pulsar: Any, make_topic: Any, tmp_path: Path, small: int) -> None:
    assert {step for step, _ in TWICE} == set(PLAIN_STEPS)
    crash_at_least_once_at(pulsar, make_topic, tmp_path, [(*point, small) for point in TWICE])


@pytest.mark.crash
@pytest.mark.timeout(3_600)
def test_each_step_in_a_batch_that_finds_producers_open(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    crash_at(pulsar, make_topic, tmp_path, third_batch(EVERYWHERE), turn=1, spark=spark)


@pytest.mark.crash
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_each_step_three_times(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, turn: int, stateful: bool
) -> None:
    crash_at(pulsar, make_topic, tmp_path, first_batch(EVERYWHERE), turn=turn, spark=spark if stateful else None)
