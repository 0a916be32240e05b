"""Faults to the driver process and to what belongs to it: workers, executors, planners."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from statestore.drills.chaos.driver_events import Word
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.processes import kill_all

LOCAL = "local[2,4]"
EXECUTORS = "local-cluster[2,1,512]"
"""Two executors of one core and 512 MB each, in processes of their own."""
EXECUTOR_COUNT = 2
"""How many there are, on a standalone cluster too."""
_END_S = 120.0


def kill(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL the driver, somewhere in or between its batches."""
    wait_s = chance.uniform(0, 2)
    stage.let_pass(wait_s)
    stage.supervisor.kill()
    stage.done(f"driver and JVM killed {wait_s:.2f} s after the jobs had caught up")


def pause(stage: FaultTargets, chance: random.Random) -> None:
    """SIGSTOP the driver for a while."""
    seconds = chance.uniform(3, 6)
    driver = stage.supervisor.driver
    stage.let_pass(chance.uniform(0, 1))
    driver.pause()
    try:
        stage.done(f"driver, JVM and workers paused for {seconds:.1f} s")
        stage.let_pass(seconds)
    finally:
        driver.resume()


def second(stage: FaultTargets, chance: random.Random) -> None:
    """Start a second driver on the same checkpoints while the first stands still; wake the first up afterwards."""
    supervisor = stage.supervisor
    stage.let_pass(chance.uniform(0, 2))
    supervisor.driver.pause()
    first = supervisor.replace()
    try:
        stage.done("the driver stands still, and another one is started on the same checkpoints")
        supervisor.one_more("a batch of each job in the second driver")
        first.resume()

        def ended() -> set[str]:
            return {said.job for said in supervisor.heard_of(first) if said.word is Word.FAILED}

        deadline = time.monotonic() + _END_S
        supervisor.wait(
            lambda: ended() == supervisor.jobs.keys() or not first.alive or time.monotonic() > deadline,
            "the first driver to end",
            2 * _END_S,
        )
        told = supervisor.heard_of(first)
        why = "; ".join(f"{said.job}: {said.text}" for said in told if said.word is Word.FAILED)
        late = supervisor.late_commits(first)
        stage.check("the first driver ends when it wakes up", ended() == supervisor.jobs.keys(), why)
        stage.check("the first driver commits no batch any more", not late, f"batches {late}")
    finally:
        first.kill()


def kill_workers(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL the Python workers shortly after a batch of a job that writes by tasks has begun."""
    _let_begin(stage)
    stage.let_pass(chance.uniform(0, 0.3))
    workers = _some(stage, lambda: stage.supervisor.driver.workers(), "Python workers")
    kill_all(workers)
    stage.done(f"{len(workers)} Python workers killed while a batch was written")


def kill_planner(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL the process that plans the micro-batches of the source, in a batch or after it."""
    _let_begin(stage)
    wait_s = chance.uniform(0, 1)
    stage.let_pass(wait_s)
    planners = _some(stage, lambda: stage.supervisor.driver.planners(), "a planner of micro-batches")
    kill_all(planners)
    stage.done(f"{len(planners)} planner killed {wait_s:.2f} s after a batch had begun")


def kill_executor(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL an executor's JVM and its workers."""
    _wait_for_executors(stage)
    stage.let_pass(chance.uniform(0, 1))
    executor = chance.choice(sorted(stage.executors, key=lambda process: process.pid))
    with suppress(psutil.NoSuchProcess):
        kill_all([executor, *executor.children(recursive=True)])
    stage.done("one of two executors killed with its workers")


def kill_node(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL a worker of the standalone cluster with its executor, as if its machine were gone; start it again."""
    assert stage.standalone is not None
    _wait_for_executors(stage)
    number, down_s = chance.randrange(stage.standalone.workers), chance.uniform(0, 4)
    stage.let_pass(chance.uniform(0, 1))
    stage.standalone.kill_worker(number)
    stage.done(f"worker node {number} killed with its executor, and started again after {down_s:.1f} s")
    stage.let_pass(down_s)
    stage.standalone.start_worker(number)
    stage.standalone.wait_for_workers()


def _wait_for_executors(stage: FaultTargets) -> None:
    stage.supervisor.wait(lambda: len(stage.executors) == EXECUTOR_COUNT, "two executors")


def _some(stage: FaultTargets, find: Callable[[], list[psutil.Process]], what: str) -> list[psutil.Process]:
    """Wait until there is a process to kill: a fault that hits nothing would count as one that was got over."""
    found: list[psutil.Process] = []

    def there() -> bool:
        found[:] = find()
        return bool(found)

    stage.supervisor.wait(there, what)
    return found


def _let_begin(stage: FaultTargets) -> None:
    """Wait until the next batch begins that is written by tasks."""
    supervisor, job = stage.supervisor, stage.by_tasks
    began = supervisor.count(Word.BEGAN, job)
    supervisor.wait(lambda: supervisor.count(Word.BEGAN, job) > began, "a batch to begin")
