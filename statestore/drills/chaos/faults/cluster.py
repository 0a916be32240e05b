"""Faults to the cluster's members: killed, paused, or without room on their disk."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from eos.local import LocalError, Member
from eos.local.member import ask_zookeeper
from statestore.drills.chaos.fault_targets import FaultTargets

_READ_ONLY_S = 60.0
_BATCHES_WITHOUT = 5
# Any disk is fuller than this; a bookie that finds it so serves what it has and takes nothing new.
_FULL = {"diskUsageThreshold": "0.00003", "diskUsageWarnThreshold": "0.00002", "diskUsageLwmThreshold": "0.00001"}


def kill(*names: str) -> Callable[[FaultTargets, random.Random], None]:
    """SIGKILL one of these members; start it again some seconds later."""

    def fault(stage: FaultTargets, chance: random.Random) -> None:
        name, down_s = chance.choice(names), chance.uniform(0, 4)
        stage.let_pass(chance.uniform(0, 1))
        stage.member(name).kill()
        stage.done(f"{name} killed, and started again after {down_s:.1f} s")
        stage.let_pass(down_s)
        stage.restart(name)

    return fault


def lose_broker(stage: FaultTargets, chance: random.Random) -> None:
    """SIGKILL a broker for good. Another comes when the jobs have long been at work again without it."""
    name = chance.choice(("broker-0", "broker-1"))
    stage.let_pass(chance.uniform(0, 1))
    stage.member(name).kill()
    stage.done(f"{name} killed for good")
    for number in range(_BATCHES_WITHOUT):
        stage.supervisor.one_more(f"batch {number + 1} of each job without {name}")
    stage.restart(name)


def pause(*names: str, seconds: tuple[float, float]) -> Callable[[FaultTargets, random.Random], None]:
    """SIGSTOP one of these members for a while."""

    def fault(stage: FaultTargets, chance: random.Random) -> None:
        name, for_s = chance.choice(names), chance.uniform(*seconds)
        stage.let_pass(chance.uniform(0, 1))
        member = stage.member(name)
        member.pause()
        try:
            stage.done(f"{name} paused for {for_s:.1f} s")
            stage.let_pass(for_s)
        finally:
            member.resume()

    return fault


def fill_disk(stage: FaultTargets, chance: random.Random) -> None:
    """Start a bookie again that takes its disk for full; after a while, start it with its own settings."""
    name, for_s = chance.choice(("bookie-0", "bookie-1", "bookie-2")), chance.uniform(4, 8)
    member = stage.member(name)
    whole = member.part
    lines = (line.partition("=") for line in whole.configuration.splitlines())
    told = "".join(f"{key}={_FULL.get(key, value)}\n" for key, _, value in lines)
    member.kill()
    stage.done(f"{name} killed, and started again for {for_s:.1f} s with a threshold by which its disk is full")
    member.part = replace(whole, configuration=told)
    try:
        stage.cluster.launch(name)
        stage.check("the bookie is read-only", _read_only(member), f"{name}, as it is registered in ZooKeeper")
        stage.let_pass(for_s)
    finally:
        member.part = whole
    stage.restart(name)


def _read_only(member: Member) -> bool:
    deadline = time.monotonic() + _READ_ONLY_S
    while time.monotonic() < deadline:
        try:
            if f"/ledgers/available/readonly/{member.address}\n" in ask_zookeeper(member.zookeeper_port, "dump"):
                return True
        except OSError as error:
            raise LocalError(f"ZooKeeper does not answer: {error}") from error
        time.sleep(0.2)
    return False
