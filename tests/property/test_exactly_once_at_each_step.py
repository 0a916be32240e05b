"""Exactly once, with a driver that dies, or stands still, just before and just after each step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.steps import Phase, Step
from tests.property.test_exactly_once import check
from tests.simulation.broker import Broker
from tests.simulation.job import Job, recover
from tests.simulation.world import Crash, Plan, Scheduler

AROUND = [(step, phase) for step in Step for phase in ("before", "after")]
IDS = [f"{phase} {step}" for step, phase in AROUND]


class At:
    """Does something at one step of one batch, once."""

    def __init__(self, step: Step, phase: Phase, batch_id: int, does: Callable[[], None]) -> None:
        self._when = step, phase, (None, batch_id)
        self._does = does
        self.done = False

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if not self.done and (step, phase) == self._when[:2] and batch_id in self._when[2]:
            self.done = True
            self._does()


def die() -> None:
    """Be killed."""
    raise Crash


@pytest.mark.parametrize("batch_id", [0, 2])
@pytest.mark.parametrize(("step", "phase"), AROUND, ids=IDS)
def test_a_driver_dies(step: Step, phase: Phase, batch_id: int) -> None:
    world = Scheduler(Broker(), Plan())
    job = Job(world, target=5)
    dies = At(step, phase, batch_id, die)
    world.run([lambda: job.run("run-0", dies)])
    assert dies.done, "the step was never reached"
    recover(job)
    check(job)


@pytest.mark.parametrize("seconds", [30, 200], ids=["within the ttl", "past the ttl"])
@pytest.mark.parametrize("batch_id", [0, 2])
@pytest.mark.parametrize(("step", "phase"), AROUND, ids=IDS)
def test_a_driver_stands_still_while_another_takes_over(
    step: Step, phase: Phase, batch_id: int, seconds: float
) -> None:
    world = Scheduler(Broker(), Plan())
    job = Job(world, target=5)
    stops = At(step, phase, batch_id, lambda: world.sleep(seconds))

    def successor() -> None:
        while not stops.done:
            world.pause()
        job.run("run-1")

    world.run([lambda: job.run("run-0", stops), successor])
    assert stops.done, "the step was never reached"
    recover(job)
    check(job)


def test_each_step_is_reported_before_and_after_and_in_order() -> None:
    told: list[tuple[Step, Phase]] = []
    world = Scheduler(Broker(), Plan())
    job = Job(world, target=0)
    world.run([lambda: job.run("run-0", lambda step, phase, batch_id: told.append((step, phase)))])
    assert told == AROUND
