"""Faults at a boundary of frames: the links go silent just before a certain frame of a batch, and are then cut.

The ten frames of a commit between the driver and its brokers come in one order; those of tasks don't. While the batch
is held, the other job comes to rest, so that no frame of another batch is counted.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from eos.steps import Step
from statestore.drills.chaos.driver_events import Word
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults.commit import At, await_word, held
from statestore.drills.chaos.faults.network import broker_links
from statestore.drills.chaos.frames import OF_DRIVER, OF_TASKS, FrameBoundary
from statestore.drills.chaos.plan import FRAMES

_COMMIT = (
    "NEW_TXN",
    "the answer to NEW_TXN",
    "SEND of the intent",
    "the intent's receipt",
    "ADD_PARTITION_TO_TXN of the control topic",
    "the answer to ADD_PARTITION_TO_TXN",
    "SEND of the marker",
    "the marker's receipt",
    "END_TXN",
    "the answer to END_TXN",
)
_FIRST: At = (Step.OPEN, "before")
_BEFORE_TASKS: At = (Step.ADD_CONTROL, "after")
_AFTER_TASKS: At = (Step.MARKER, "before")
_BEGUN = 6  # of the frames, when the tasks begin
_OF_TASKS = 12  # two tasks: each adds partitions, sends, and closes, with an answer to each; the rest is chance
assert len(_COMMIT) + 1 == FRAMES


def commit(half_open: bool) -> Callable[[FaultTargets, random.Random], None]:
    """Break all links at a boundary of a commit: the first time before its first frame, then before the next one."""

    def fault(stage: FaultTargets, chance: random.Random) -> None:
        frame = stage.turn % FRAMES
        if frame == len(_COMMIT):
            _behind_the_last(stage, chance, half_open)
        elif frame < _BEGUN:
            _break(stage, chance, _FIRST, FrameBoundary(OF_DRIVER, frame + 1), half_open, _COMMIT[frame])
        else:
            _break(stage, chance, _AFTER_TASKS, FrameBoundary(OF_DRIVER, frame + 1 - _BEGUN), half_open, _COMMIT[frame])

    return fault


def tasks(half_open: bool) -> Callable[[FaultTargets, random.Random], None]:
    """Break all links at a boundary of the frames of a batch's tasks."""

    def fault(stage: FaultTargets, chance: random.Random) -> None:
        number = chance.randint(1, _OF_TASKS)
        _break(stage, chance, _BEFORE_TASKS, FrameBoundary(OF_TASKS, number), half_open, f"frame {number} of the tasks")

    return fault


def _break(
    stage: FaultTargets, chance: random.Random, at: At, boundary: FrameBoundary, half_open: bool, what: str
) -> None:
    running = stage.supervisor.jobs[stage.by_tasks]
    _, links = broker_links(stage)
    try:
        with held(stage, running, at) as batch:
            others = [job for name, job in stage.supervisor.jobs.items() if name != running.spec.job]
            last = stage.feeder.files - 1  # the next file comes when the job that is held has committed this one
            stage.supervisor.wait(lambda: all(job.committed == last for job in others), "the other jobs to rest")
            for link in links:
                link.stop_at(boundary)
            committed = stage.supervisor.count(Word.COMMITTED, running.spec.job)
        stage.supervisor.wait(
            lambda: boundary.reached.is_set() or stage.supervisor.count(Word.COMMITTED, running.spec.job) > committed,
            what,
        )
        _silence(stage, chance, half_open, f"just before {what} of batch {batch}")
    finally:
        for link in links:
            link.heal()
    stage.check("the frame was met", boundary.reached.is_set(), f"{what}: kind {boundary.frame}")


def _behind_the_last(stage: FaultTargets, chance: random.Random, half_open: bool) -> None:
    running = stage.supervisor.jobs[stage.by_tasks]
    _, links = broker_links(stage)
    try:
        with held(stage, running, (Step.END_SENT, "before")) as batch:
            answered = stage.supervisor.count(Word.ANSWERED, running.spec.job)
        await_word(stage, running, Word.ANSWERED, answered)
        _silence(stage, chance, half_open, f"just after {_COMMIT[-1]} of batch {batch}")
    finally:
        for link in links:
            link.heal()


def _silence(stage: FaultTargets, chance: random.Random, half_open: bool, where: str) -> None:
    """Keep all links silent for a while, or cut them at once."""
    _, links = broker_links(stage)
    for_s = chance.uniform(2, 4)
    for link in links:
        link.swallow()
    if half_open:
        stage.done(f"nothing passes to or from the brokers for {for_s:.1f} s, from {where} on")
        stage.let_pass(for_s)
    else:
        for link in links:
            link.cut()
        stage.done(f"all connections to the brokers reset {where}")
