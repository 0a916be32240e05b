"""Spark loses executors and Python workers, and two drivers run at once: each row arrives exactly once.

The drivers run in processes of their own, so that each has the master it needs.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from eos.local.jvm import QUICK_START
from tests.child_process import ROOT
from tests.crash.job import Job, prepare
from tests.crash.process import Driver, account_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FILES, ROWS = 4, 400

CLUSTER = {
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.executor.extraJavaOptions": " ".join(QUICK_START),
    # Both executors are there before the first task, or one of them might hold no shuffle blocks.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "10min",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    # Files in many pieces, so that both executors hold shuffle blocks.
    "spark.sql.files.maxPartitionBytes": "1000",
    "spark.sql.files.openCostInBytes": "0",
}


def by_tasks(pulsar: Any, make_topic: Any, folder: Path, **fields: Any) -> Job:
    topic = make_topic("fault", partitions=3)
    return prepare(pulsar.service_url, topic, folder, FILES, ROWS, small_batch_rows=0, **fields)


def expect_exact(job: Job) -> None:
    result = account_for(job.service_url, job.topic, FILES, ROWS)
    assert result.is_exact(), result
    assert result.found == FILES * ROWS


@pytest.mark.crash
def test_a_killed_executor_makes_spark_run_partitions_twice(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    """The executor holds shuffle blocks; its writing task lives on as a zombie, and sends when all is over."""
    job = by_tasks(
        pulsar,
        make_topic,
        tmp_path,
        master="local-cluster[2,1,1024]",
        conf=CLUSTER,
        spread=8,
        fault=("gate", "first-send", "before", 1),
    )
    with Driver(job) as driver:
        zombie = psutil.Process(job.gate.wait())
        daemon = zombie.parent()
        assert daemon is not None
        executor = daemon.parent()
        assert executor is not None
        assert "CoarseGrainedExecutorBackend" in " ".join(executor.cmdline())
        daemon.kill()  # else it would take the zombie with it
        executor.kill()
        try:
            driver.finish()
            assert zombie.is_running()
            job.gate.open()
            psutil.wait_procs([zombie], timeout=60)
            assert not zombie.is_running()
        finally:
            if zombie.is_running():
                zombie.kill()
        assert "attempts: Spark ran partitions again" in driver.logged
        assert driver.metrics()["attempts"] > driver.metrics()["committed"] == FILES
    expect_exact(job)


def test_a_killed_python_worker(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    """Spark tries the task again by itself; that try refuses to write into the same transaction."""
    job = by_tasks(
        pulsar, make_topic, tmp_path, master="local[2,4]", spread=4, fault=("kill-worker", "first-send", "after", 1)
    )
    with Driver(job) as driver:
        driver.finish()
        assert Path(job.fault_folder, "killed").exists()
        assert driver.metrics()["attempts"] == FILES + 1
        assert "Attempt 1 of a writing task refuses to run" in driver.logged
    expect_exact(job)


@pytest.mark.crash
def test_without_a_transaction_a_task_that_lost_its_python_worker_writes_again(
    pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    """Spark tries the task again by itself, and the batch is done with it: some rows are there twice, none is lost."""
    job = by_tasks(
        pulsar,
        make_topic,
        tmp_path,
        master="local[2,4]",
        spread=4,
        fault=("kill-worker", "all-sent", "after", 1),
        options={"guarantee": "at-least-once"},
    )
    with Driver(job) as driver:
        driver.finish()
        assert Path(job.fault_folder, "killed").exists()
        assert driver.metrics()["attempts"] == driver.metrics()["committed"] == FILES
    result = account_for(job.service_url, job.topic, FILES, ROWS)
    assert result.duplicated is not None, result
    assert (result.lost, result.unexpected) == (0, 0)
    assert 0 < result.duplicated == result.found - FILES * ROWS


def test_a_second_driver_fences_the_first(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    first = by_tasks(pulsar, make_topic, tmp_path, fault=("gate", "end-sent", "before", 1))
    with Driver(first) as one:
        stopped = first.gate.wait()
        with Driver(replace(first, fault=None)) as other:
            other.finish()
            done = other.metrics()
        os.kill(stopped, 0)
        first.gate.open()
        assert one.wait() == 1
        assert "eos.errors.Fenced" in one.tail()
    assert done["committed"] == FILES - 1
    expect_exact(first)
