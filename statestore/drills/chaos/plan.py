"""Which faults there are, and which of them a drill does, in which order: drawn from a seed alone."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from statestore.drills.journal import PlannedFault
from statestore.errors import InvalidInput

AT_LEAST = 5
"""How often a plan has each kind before it has a cheap one more often."""


class Family(StrEnum):
    """The target of a fault, in the words of `--faults`."""

    DRIVER = "driver"
    WORKER = "worker"
    PLANNER = "planner"
    EXECUTOR = "executor"
    BROKER = "broker"
    BOOKIE = "bookie"
    ZOOKEEPER = "zookeeper"
    NETWORK = "network"
    TTL = "ttl"
    DISK = "disk"
    CHECKPOINT = "checkpoint"
    CONTROL_TOPIC = "control-topic"
    TOPIC = "topic"
    COMMIT = "commit"


Runs = Literal["in one process", "standalone", "both"]
FRAMES = 11
"""Boundaries of a commit between driver and brokers: before each of its ten frames, and after the last."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault.

    Attributes:
        does: what is done, for people; it stands in docs/chaos-drill.md.
        cheap: over in seconds, so that a plan may have more than `AT_LEAST` of it.
        on_executors: the job must run on executors of its own for it.
        end_to_end: it is done to the job from topic to topic, which not every drill has.
        runs: the drills that have it: those with Spark in one process, those with a standalone cluster, or both.
        times: how often it comes in a round of a drill with a standalone cluster.
    """

    name: str
    family: Family
    does: str
    cheap: bool = False
    on_executors: bool = False
    end_to_end: bool = False
    runs: Runs = "in one process"
    times: int = 1


KINDS = (
    FaultKind("driver-kill", Family.DRIVER, "SIGKILL the driver with its JVM, at any moment. Start it again"),
    FaultKind(
        "driver-kill-before-commit",
        Family.DRIVER,
        "SIGKILL the driver at a step of a batch before its commit. The batch must be written again",
    ),
    FaultKind(
        "driver-kill-in-commit",
        Family.DRIVER,
        "SIGKILL the driver when it has sent a commit and seen no answer",
    ),
    FaultKind(
        "driver-kill-after-commit",
        Family.DRIVER,
        "SIGKILL the driver when a batch is committed, and Spark has not noted it. The batch must be skipped",
    ),
    FaultKind("driver-pause", Family.DRIVER, "SIGSTOP the driver, its JVM and its workers for 3 to 6 s", cheap=True),
    FaultKind(
        "driver-second", Family.DRIVER, "start a second driver while the first stands still. The first must then end"
    ),
    FaultKind("worker-kill", Family.WORKER, "SIGKILL the Python workers while a batch is written", cheap=True),
    FaultKind(
        "planner-kill",
        Family.PLANNER,
        "SIGKILL the Python process that plans the batches of the Pulsar source. Only with `--end-to-end`",
        end_to_end=True,
    ),
    FaultKind(
        "executor-kill", Family.EXECUTOR, "SIGKILL one of two executors and its workers", on_executors=True, runs="both"
    ),
    FaultKind(
        "node-kill",
        Family.EXECUTOR,
        "SIGKILL one of two worker nodes with all that it has started. Start it again. Only with `--standalone`",
        runs="standalone",
    ),
    FaultKind("broker-kill", Family.BROKER, "SIGKILL a broker. Start it again", runs="both"),
    FaultKind(
        "broker-kill-in-commit",
        Family.BROKER,
        "SIGKILL the broker with the transaction's coordinator up to 20 ms after a commit was sent. Start it again",
        runs="both",
    ),
    FaultKind(
        "broker-lost",
        Family.BROKER,
        "SIGKILL a broker. Start none before the jobs have run long on the other. Only with `--standalone`",
        runs="standalone",
    ),
    FaultKind(
        "broker-pause", Family.BROKER, "SIGSTOP a broker for 3 to 10 s, past its session with ZooKeeper", cheap=True
    ),
    FaultKind("bookie-kill", Family.BOOKIE, "SIGKILL a bookie. Start it again", runs="both"),
    FaultKind("bookie-pause", Family.BOOKIE, "SIGSTOP a bookie for 3 to 10 s", cheap=True, runs="both"),
    FaultKind("zookeeper-kill", Family.ZOOKEEPER, "SIGKILL the only ZooKeeper. Start it again"),
    FaultKind("zookeeper-pause", Family.ZOOKEEPER, "SIGSTOP ZooKeeper for 2 to 5 s", cheap=True),
    FaultKind("broker-link-delay", Family.NETWORK, "each packet between job and brokers 0.1 to 0.4 s late", cheap=True),
    FaultKind("broker-link-cut", Family.NETWORK, "reset all connections between job and brokers", cheap=True),
    FaultKind(
        "broker-link-half-open", Family.NETWORK, "swallow all packets between job and brokers, then cut", cheap=True
    ),
    FaultKind(
        "commit-answer-lost",
        Family.NETWORK,
        "swallow the answer to a commit, then reset all connections between job and brokers",
        cheap=True,
    ),
    FaultKind(
        "state-link-delay", Family.NETWORK, "each packet between state and ZooKeeper 0.1 to 0.4 s late", cheap=True
    ),
    FaultKind("state-link-cut", Family.NETWORK, "reset all connections between bk:// and ZooKeeper", cheap=True),
    FaultKind(
        "state-link-half-open", Family.NETWORK, "swallow all packets between bk:// and ZooKeeper, then cut", cheap=True
    ),
    FaultKind(
        "transaction-timeout", Family.TTL, "hold a batch just before its commit until its transaction has timed out"
    ),
    FaultKind(
        "bookie-disk-full", Family.DISK, "start a bookie again with a disk that it takes for full. It is read-only"
    ),
    FaultKind("checkpoint-file-corrupted", Family.CHECKPOINT, "other bytes in a file that the job needs to start"),
    FaultKind("checkpoint-file-deleted", Family.CHECKPOINT, "delete a file that the job needs to start"),
    FaultKind("checkpoint-folder-deleted", Family.CHECKPOINT, "delete the whole checkpoint while the job is down"),
    FaultKind("control-topic-deleted", Family.CONTROL_TOPIC, "delete the sink's control topic while the job is down"),
    FaultKind(
        "topic-unload",
        Family.TOPIC,
        "unload a job's topic when a task of a batch has sent its first frame. Only with `--standalone`",
        runs="standalone",
    ),
    FaultKind(
        "topic-unload-in-commit",
        Family.TOPIC,
        "unload a job's topic and its sink's control topic when a commit was sent. Only with `--standalone`",
        runs="standalone",
    ),
    FaultKind(
        "topic-move",
        Family.TOPIC,
        "have the other broker own a job's topic, in the middle of a batch. Only with `--standalone`",
        runs="standalone",
    ),
    FaultKind(
        "partitions-added",
        Family.TOPIC,
        "add a partition to a job's topic, in the middle of a batch. Only with `--standalone`",
        runs="standalone",
    ),
    FaultKind(
        "commit-frame-cut",
        Family.COMMIT,
        "reset all connections at a boundary of the frames of a commit, each in turn. Only with `--standalone`",
        runs="standalone",
        times=FRAMES,
    ),
    FaultKind(
        "commit-frame-half-open",
        Family.COMMIT,
        "swallow all packets from such a boundary on for 2 to 4 s, then cut. Only with `--standalone`",
        runs="standalone",
        times=FRAMES,
    ),
    FaultKind(
        "task-frame-cut",
        Family.COMMIT,
        "reset all connections at a boundary of the frames of a batch's tasks. Only with `--standalone`",
        runs="standalone",
    ),
    FaultKind(
        "task-frame-half-open",
        Family.COMMIT,
        "swallow all packets from such a boundary on for 2 to 4 s, then cut. Only with `--standalone`",
        runs="standalone",
    ),
)
"""Every kind of fault. Plans, faults, docs and `--faults` are made of this table."""

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(name: str) -> FaultKind:
    """Return a kind by its name. Raises KeyError when there is none."""
    return _BY_NAME[name]


def parse_faults(text: str | None) -> tuple[str, ...]:
    """Read `driver,broker-kill,network`, families and single kinds; None or nothing: all families.

    Raises:
        InvalidInput: there is no such family, and no such kind.
    """
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    unknown = sorted(set(words) - set(Family) - set(_BY_NAME))
    if unknown:
        raise InvalidInput(
            f"There is no fault family and no kind {', '.join(unknown)}. There are the families {', '.join(Family)}, "
            "and the kinds in docs/chaos-drill.md."
        )
    return tuple(words or Family)


def make_plan(
    kills: int, seed: int, faults: Collection[str] = tuple(Family), end_to_end: bool = False
) -> tuple[PlannedFault, ...]:
    """Draw a plan; the same arguments give the same plan.

    Each kind comes `AT_LEAST` times, if `kills` allows it, and what is left goes to the cheap ones. With fewer kills
    than kinds each comes once at most. Faults to executors come first: the jobs run on executors of their own for them,
    and move to the driver's process after that.

    `faults`: families and kinds. `end_to_end`: whether the drill has the job from topic to topic, so that it can be
    struck.

    Raises:
        InvalidInput: `kills` is less than 1, or `faults` has what this drill can't do.
    """
    if kills < 1:
        raise InvalidInput(f"--kills is {kills}. A drill needs one fault at least.")
    chance = random.Random(seed)
    here = [kind for kind in KINDS if kind.runs != "standalone"]
    _refuse_impossible(faults, here, "this needs executors on a cluster. Add --standalone.")
    possible = [kind for kind in here if end_to_end or not kind.end_to_end]
    _refuse_impossible(faults, possible, "this needs the job of --end-to-end. Add that option.")
    kinds = [kind for kind in possible if _is_of(kind, faults)]
    drawn = _draw(kinds, kills, chance)
    chance.shuffle(drawn)
    return _numbered(sorted(drawn, key=lambda kind: not kind.on_executors))


def make_rounds(rounds: int, seed: int, faults: Collection[str] = tuple(Family)) -> tuple[PlannedFault, ...]:
    """Draw the plan of a drill with a standalone cluster: each kind that there is for it, `rounds` by its `times`.

    Raises:
        InvalidInput: `rounds` is less than 1, or `faults` has what this drill can't do.
    """
    if rounds < 1:
        raise InvalidInput(f"--rounds is {rounds}. A drill needs one at least.")
    possible = [kind for kind in KINDS if kind.runs != "in one process"]
    _refuse_impossible(faults, possible, "this is not possible with --standalone. Leave that option out.")
    kinds = [kind for kind in possible if _is_of(kind, faults)]
    drawn = [kind for kind in kinds for _ in range(rounds * kind.times)]
    random.Random(seed).shuffle(drawn)
    return _numbered(drawn)


def _is_of(kind: FaultKind, faults: Collection[str]) -> bool:
    return kind.family in faults or kind.name in faults


def _refuse_impossible(faults: Collection[str], possible: Sequence[FaultKind], why: str) -> None:
    """Refuse a family or a kind that was asked for and has nothing possible, rather than leave it out."""
    if tuple(faults) == tuple(Family):  # nobody asked for one of them
        return
    lacking = [word for word in faults if not any(_is_of(kind, (word,)) for kind in possible)]
    if lacking:
        raise InvalidInput(f"{', '.join(lacking)}: {why}")


def _numbered(kinds: Sequence[FaultKind]) -> tuple[PlannedFault, ...]:
    return tuple(PlannedFault(n, kind.name, kind.family.value) for n, kind in enumerate(kinds, start=1))


def _draw(kinds: Sequence[FaultKind], kills: int, chance: random.Random) -> list[FaultKind]:
    if kills < len(kinds):
        return chance.sample(list(kinds), kills)
    each = min(AT_LEAST, kills // len(kinds))
    drawn = [kind for kind in kinds for _ in range(each)]
    more = [kind for kind in kinds if kind.cheap] or list(kinds)
    left = kills - len(drawn)
    return drawn + more * (left // len(more)) + chance.sample(more, left % len(more))


def chance_of(seed: int, fault: PlannedFault) -> random.Random:
    """The chance that decides what a fault is done to, and when: each fault has its own, whatever came before it."""
    return random.Random(f"{seed}/{fault.n}/{fault.kind}")
