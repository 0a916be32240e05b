"""Faults to a job's topics while a batch is written: unloaded, moved to the other broker, given another partition."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from eos.commit.control_topic import control_topic
from eos.pulsar.protocol.topics import partition_name
from eos.steps import Step
from statestore.drills.admin import DrillAdmin
from statestore.drills.chaos.driver_events import Word, held_by
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults.commit import At, await_word, held, order
from statestore.drills.chaos.supervisor import Running

_IN_TASK: At = (Step.FIRST_SEND, "after")
_ASK_S, _ASKS = 5.0, 24
"""Seconds that a broker has for a move, and how often it is asked: under load it forgets about every second one."""
_NAMESPACE = "public/default"
_POLL_S = 0.5


def unload(stage: FaultTargets, chance: random.Random) -> None:
    """Unload the topic when a task of a batch has sent its first frame."""
    running = _job(stage)
    with _held_in_task(stage, running) as batch:
        _unload(stage, running.spec.topic)
        stage.done(f"{running.spec.topic} unloaded in the middle of batch {batch}")


def unload_in_commit(stage: FaultTargets, chance: random.Random) -> None:
    """Unload the topic and the control topic when a commit was sent."""
    running = _job(stage)
    with held(stage, running, (Step.END_SENT, "before")) as batch:
        sent = stage.supervisor.count(Word.SENT, running.spec.job)
    await_word(stage, running, Word.SENT, sent)
    _unload(stage, running.spec.topic)
    _unload(stage, control_topic(running.spec.sink, running.spec.topic))
    stage.done(f"{running.spec.topic} and the control topic unloaded when the commit of batch {batch} was sent")


def move(stage: FaultTargets, chance: random.Random) -> None:
    """Have the other broker own a partition of the topic, with all that is in its bundle."""
    running = _job(stage)
    partition = partition_name(running.spec.topic, chance.randrange(3))
    with DrillAdmin(stage.cluster.admin_url) as admin:
        with _held_in_task(stage, running) as batch:
            before = _owner(stage, admin, partition)
            after = 1 - before
            bundle, broker = admin.bundle(partition), _named(stage, admin, after)
            admin.move(_NAMESPACE, bundle, broker)
            stage.done(f"bundle {bundle} moves from broker-{before} to broker-{after} in the middle of batch {batch}")
        moved, asked = _moved(stage, admin, partition, after), 1
        while not moved and asked < _ASKS:  # of two lookups at once only one gets the destination (apache/pulsar#24884)
            admin.move(_NAMESPACE, bundle, broker)
            moved, asked = _moved(stage, admin, partition, after), asked + 1
        stage.check("the topic has moved", moved, f"{partition}, of bundle {bundle}")


def add_partition(stage: FaultTargets, chance: random.Random) -> None:
    """Give the topic one partition more, in the middle of a batch."""
    running = _job(stage)
    at: At = chance.choice(((Step.OPEN, "before"), (Step.ADD_CONTROL, "after"), (Step.MARKER, "before")))
    with DrillAdmin(stage.cluster.admin_url) as admin, held(stage, running, at) as batch:
        number = admin.partitions(running.spec.topic)
        stage.repartitioned.add(running.spec.job)
        admin.set_partitions(running.spec.topic, number + 1)
        stage.done(f"{running.spec.topic} has {number + 1} partitions since the middle of batch {batch}")


def _job(stage: FaultTargets) -> Running:
    return stage.supervisor.jobs[stage.by_tasks]


@contextmanager
def _held_in_task(stage: FaultTargets, running: Running) -> Iterator[int]:
    """Within it a task of a batch stands still; give the batch's number. The words of a task are not heard."""
    hold = order(stage, running, _IN_TASK)
    try:
        stage.supervisor.wait(held_by(hold).exists, "a task to send")
        yield running.newest
    finally:
        hold.unlink(missing_ok=True)
        held_by(hold).unlink(missing_ok=True)


def _unload(stage: FaultTargets, topic: str) -> None:
    with DrillAdmin(stage.cluster.admin_url) as admin:
        admin.unload(topic)


def _owner(stage: FaultTargets, admin: DrillAdmin, partition: str) -> int:
    return stage.cluster.broker_urls.index(admin.owner(partition))


def _named(stage: FaultTargets, admin: DrillAdmin, broker: int) -> str:
    """How a broker is known to the others: its host, as it takes it, and the port of its admin API."""
    port = stage.cluster.admin_urls[broker].rpartition(":")[2]
    return next(name for name in admin.brokers() if name.endswith(f":{port}"))


def _moved(stage: FaultTargets, admin: DrillAdmin, partition: str, to: int) -> bool:
    deadline = time.monotonic() + _ASK_S
    while _owner(stage, admin, partition) != to:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
