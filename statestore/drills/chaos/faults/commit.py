"""Faults aimed at one step of a batch: the batch stands still there, so that the step is met for sure, until they hit.

They strike the job that writes by tasks, since its batches are the largest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eos.commit.takeover import bound_coordinator
from eos.pulsar.protocol.topics import COORDINATOR_TOPIC, partition_name
from eos.steps import Phase, Step
from statestore.drills.admin import DrillAdmin
from statestore.drills.chaos.driver_events import DriverEvents, Word, held_by, order_of
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults.network import broker_links
from statestore.drills.chaos.supervisor import Running

At = tuple[Step, Phase]

BEFORE: tuple[At, ...] = (
    (Step.OPEN, "after"),
    (Step.INTENT, "after"),
    (Step.ADD_CONTROL, "after"),
    (Step.MARKER, "after"),
    (Step.END_SENT, "before"),
)
"""Where the batch is not committed: it is written again."""
BETWEEN: At = (Step.END_SENT, "after")
"""Where its commit was sent, and no answer was seen: either."""
BEHIND: tuple[At, ...] = ((Step.END_ANSWERED, "after"), (Step.RETURN, "before"), (Step.RETURN, "after"))
"""Where it is committed, and Spark has not noted it: it is skipped."""


def kill_before(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL the driver at a step of a batch before its commit."""
    running = _kill_at(stage, chance.choice(BEFORE))
    replayed = running.replayed
    _await_commit(stage, running)
    stage.check("the batch is written again", running.replayed == replayed, f"batch {running.committed}")


def kill_between(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL the driver when it has sent a commit and has seen no answer."""
    running = _kill_at(stage, BETWEEN)
    in_doubt = running.in_doubt  # the next driver tells that there was no answer
    _await_commit(stage, running)
    stage.check("the commit was in doubt", running.in_doubt > in_doubt, f"batch {running.committed}")


def kill_behind(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL the driver when a batch is committed and Spark has not noted it."""
    running = _kill_at(stage, chance.choice(BEHIND))
    replayed = running.replayed
    _await_commit(stage, running)
    stage.check("the batch is skipped", running.replayed == replayed + 1, f"batch {running.committed}")


def lose_answer(stage: FaultTargets, chance: random.Random) -> None:
    """Swallow the answer to a commit, then reset the connections to the brokers."""
    for_s = chance.uniform(0.5, 2)
    to, proxies = broker_links(stage)
    running = _job(stage)
    try:
        with held(stage, running, (Step.END_SENT, "before")) as batch:
            in_doubt = running.in_doubt
            for proxy in proxies:
                proxy.swallow_answers()
            sent = stage.supervisor.count(Word.SENT, running.spec.job)
        await_word(stage, running, Word.SENT, sent)
        stage.done(f"nothing comes from {to} for {for_s:.1f} s, and the commit of batch {batch} was sent")
        stage.let_pass(for_s)
    finally:
        for proxy in proxies:
            proxy.heal()
    _await_commit(stage, running)
    stage.check("the commit was in doubt", running.in_doubt > in_doubt, f"batch {batch}")


def kill_coordinator(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL the broker that has the coordinator of a batch's transaction, just after the commit was sent to it."""
    late_s, down_s = chance.uniform(0, 0.02), chance.uniform(0, 4)
    running = _job(stage)
    name = _broker_of(stage, bound_coordinator(running.spec.sink, stage.cluster.coordinators))
    with held(stage, running, (Step.END_SENT, "before")) as batch:
        sent = stage.supervisor.count(Word.SENT, running.spec.job)
    await_word(stage, running, Word.SENT, sent)
    stage.let_pass(late_s)
    stage.cluster[name].kill()
    stage.done(
        f"{name}, which has the coordinator, killed {1000 * late_s:.0f} ms after the commit of batch {batch} of "
        f"{running.spec.job} was sent, and started again after {down_s:.1f} s"
    )
    stage.let_pass(down_s)
    stage.restart(name)


def outlive(stage: FaultTargets, chance: random.Random) -> None:
    """Hold a batch of a job just before its commit until the coordinator has aborted its transaction."""
    running = stage.supervisor.jobs[chance.choice(sorted(stage.supervisor.jobs))]
    for_s = stage.ttl_s + chance.uniform(2, 4)
    with held(stage, running, (Step.END_SENT, "before")) as batch:
        stage.done(
            f"batch {batch} of {running.spec.job} held for {for_s:.1f} s; its transaction times out after "
            f"{stage.ttl_s:g} s"
        )
        stage.let_pass(for_s)


def _job(stage: FaultTargets) -> Running:
    return stage.supervisor.jobs[stage.by_tasks]


def _kill_at(stage: FaultTargets, at: At) -> Running:
    """SIGKILL the driver while a batch stands still there."""
    running = _job(stage)
    with held(stage, running, at) as batch:
        stage.supervisor.kill()
        step, phase = at
        stage.done(f"driver and JVM killed just {phase} the step {step} of batch {batch} of {running.spec.job}")
    return running


@contextmanager
def held(stage: FaultTargets, running: Running, at: At) -> Iterator[int]:
    """Within it a batch of the job stands still at a step; give its number."""
    before = stage.supervisor.count(Word.HELD, running.spec.job)
    hold = order(stage, running, at)
    try:
        await_word(stage, running, Word.HELD, before)
        last: DriverEvents | None = running.last
        assert last is not None
        yield last.batch
    finally:
        held_by(hold).unlink(missing_ok=True)


def order(stage: FaultTargets, running: Running, at: At) -> Path:
    """Have the next batch of the job that comes to a step stand still there; return the file of the order."""
    hold = stage.hold / running.spec.job
    unfinished = hold.with_suffix(".new")
    unfinished.write_text(order_of(*at))
    return unfinished.rename(hold)


def await_word(stage: FaultTargets, running: Running, word: Word, before: int) -> None:
    """Wait until it was said of the job more often than before."""
    job = running.spec.job
    stage.supervisor.wait(lambda: stage.supervisor.count(word, job) > before, f"{job} to say {word}")


def _await_commit(stage: FaultTargets, running: Running) -> None:
    await_word(stage, running, Word.COMMITTED, stage.supervisor.count(Word.COMMITTED, running.spec.job))


def _broker_of(stage: FaultTargets, coordinator: int) -> str:
    """Return the member that has a coordinator."""
    with DrillAdmin(stage.cluster.admin_url) as admin:
        url = admin.owner(partition_name(COORDINATOR_TOPIC, coordinator))
    return f"broker-{stage.cluster.broker_urls.index(url)}"
