"""A driver that stands still in the middle of a batch, as in a long pause of its machine, while a second takes over."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.crash.here import run_here
from tests.crash.job import prepare
from tests.crash.process import Driver, account_for
from tests.waiting import until

FILES, ROWS = 4, 300


def family(pid: int) -> list[int]:
    """The process and all that come from it; Spark's Python workers have process groups of their own."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def stop(pids: list[int]) -> None:
    """SIGSTOP them, and wait until each of their threads stands still: one may run on for a moment."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: all(stands_still(task) for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()))


def stands_still(task: Path) -> bool:
    """Whether a thread, as a folder of /proc, is stopped or over: its state comes after the name in brackets."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] in "TZX"
    except FileNotFoundError:
        return True


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("small_batch_rows", "moment"),
    [(1_000, ("end-sent", "before")), (0, ("first-send", "after"))],
    ids=["driver path, before its commit", "task path, while a task sends"],
)
def test_a_driver_that_wakes_up_behind_its_successor_is_fenced(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, small_batch_rows: int, moment: tuple[str, str]
) -> None:
    topic = make_topic("paused", partitions=2)
    job = prepare(
        pulsar.service_url,
        topic,
        tmp_path,
        FILES,
        ROWS,
        small_batch_rows=small_batch_rows,
        fault=("gate", *moment, 1),
        options={"request_timeout_s": 8.0},  # a fenced producer's send may get no answer at all
    )
    first = Driver(job)
    asleep: list[int] = []
    try:
        job.gate.wait()
        asleep += family(first.process.pid)
        stop(asleep)
        job.gate.open()

        second = run_here(spark, job)
        assert second.metrics.committed == FILES - 1
        assert account_for(pulsar.service_url, topic, FILES, ROWS).is_exact()

        for pid in reversed(asleep):
            os.kill(pid, signal.SIGCONT)
        assert first.wait(120) != 0
        assert "Fenced" in first.tail()
    finally:
        first.kill()
        for pid in asleep:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    result = account_for(pulsar.service_url, topic, FILES, ROWS)
    assert result.is_exact(), result
    run_here(spark, job)
    assert account_for(pulsar.service_url, topic, FILES, ROWS).is_exact()
