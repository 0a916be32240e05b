"""A driver that stands still in the middle of a batch, as in a long pause of its machine, while a second takes over."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.crash.job import prepare, run_here
from tests.crash.process import Driver, account_for
from tests.waiting import until

FILES, ROWS = 4, 300


def stop(pid: int) -> list[int]:
    """SIGSTOP a process and all that come from it, parents first, until each of their threads stands still.

    Spark's Python workers have process groups of their own. A child that is made meanwhile is stopped too, and one that
    has ended is let go.
    """
    stopped: list[int] = []
    while new := [one for one in family(pid) if one not in stopped]:
        for one in new:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
            until(partial(stands_still, one))
        stopped += new
    return stopped


def family(pid: int) -> list[int]:
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def stands_still(pid: int) -> bool:
    """Whether each thread of a process is stopped or over: a thread's state comes after the name in brackets."""
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread has just ended, or the whole process
        return not psutil.pid_exists(pid)
    return all(stat.rpartition(")")[2].split()[0] in "TZX" for stat in stats)


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
        asleep += stop(first.process.pid)
        job.gate.open()

        second = run_here(spark, job)
        assert second.metrics.committed == FILES - 1
        assert account_for(pulsar.service_url, topic, FILES, ROWS).is_exact()

        for pid in reversed(asleep):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        assert first.wait() != 0
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
