"""The things that a fault may touch: the cluster, the links to it, the input, and the driver with its jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from eos.local import LocalCluster, LocalError, Member
from statestore.drills import journal
from statestore.drills.chaos.driver_events import DriverEvents
from statestore.drills.chaos.end_to_end import COPIES, EndToEnd
from statestore.drills.chaos.feed import Feeder
from statestore.drills.chaos.proxy import Proxy
from statestore.drills.chaos.recovery import Recovery, Write
from statestore.drills.chaos.supervisor import Supervisor
from statestore.drills.journal import CheckEvent, PlannedFault
from statestore.drills.standalone import StandaloneCluster

_STARTS = 3


@dataclass
class FaultTargets:
    """All that a drill has running.

    Attributes:
        broker_links: one for each broker, between it and the sinks.
        state_link: between `bk://` and ZooKeeper.
        tree: the address that checkpoints lie under; its `bk://` goes through the link.
        options: of `bk://`, for tools: not through the link.
        hold: the folder that `Watch` looks into.
        ttl_s: how long the sinks' transactions may take.
        end_to_end: the job from topic to topic; None in a drill without it.
        standalone: the Spark cluster that the jobs run on; None: they run in the driver's process, or below it.
        turn: how many faults of this kind came before.
        repartitioned: the jobs whose topics have got more partitions.
    """

    cluster: LocalCluster
    supervisor: Supervisor
    feeder: Feeder
    broker_links: Sequence[Proxy]
    state_link: Proxy
    tree: str
    options: Mapping[str, str]
    hold: Path
    ttl_s: float
    write: Write
    end_to_end: EndToEnd | None = None
    standalone: StandaloneCluster | None = None
    fault: PlannedFault = field(default=PlannedFault(0, "", ""))
    turn: int = 0
    repartitioned: set[str] = field(default_factory=set)

    @property
    def by_tasks(self) -> str:
        """The job that writes by tasks, and has the larger batches if there are two of them."""
        return COPIES if self.end_to_end is not None else "rows"

    @property
    def executors(self) -> list[psutil.Process]:
        """The executors' JVMs, wherever they run; none when the jobs run in the driver's process."""
        return (self.standalone or self.supervisor.driver).executors()

    def done(self, detail: str) -> None:
        """Say that the fault was done just now: what comes after it is its consequence."""
        fault = self.fault
        recovery = Recovery(fault.n, tuple(self.supervisor.jobs), self._what_is_there(), self.write)
        if self.end_to_end is not None and (batch := self.supervisor.jobs[COPIES].in_hand) is not None:
            detail += f"; {COPIES} was in the middle of batch {batch}"
        self.write(journal.Fault(fault.n, fault.kind, fault.family, detail))
        self.supervisor.recovery = recovery

    def check(self, what: str, passed: bool, detail: str) -> None:
        """Write down whether something was as it should be."""
        self.write(CheckEvent(f"fault {self.fault.n}, {self.fault.kind}: {what}", passed, detail))

    def member(self, name: str) -> Member:
        """Return a member of the cluster that runs: one that has ended by itself is started first, as its host would.

        A fault to a member that is gone would hit nothing, and count as one that was got over.
        """
        member = self.cluster[name]
        if member.pid is None:
            since = time.monotonic()
            self.restart(name)
            self._tell(f"start {name}", since, "it had ended by itself")
        return member

    def restart(self, name: str) -> None:
        """Start a member that was killed, as what looks after it would: one that ends while it starts, once more.

        Raises:
            LocalError: it ended each time.
        """
        for tries_left in reversed(range(_STARTS)):
            since = time.monotonic()
            try:
                self.cluster.restart(name)
                return
            except LocalError as error:
                if not tries_left:
                    raise
                self._tell(f"start {name}, which failed", since, str(error))

    def _tell(self, step: str, since: float, why: str) -> None:
        """Write down what was done besides the fault, from that moment of the monotonic clock on."""
        took = round(time.monotonic() - since, 3)
        self.write(journal.StepEvent(f"fault {self.fault.n}, {self.fault.kind}: {step}", took, why))

    def stop(self, job: str) -> None:
        """Stop a job in good order. The input goes on growing afterwards."""
        self.feeder.pause()
        try:
            if self.end_to_end is not None:
                self.end_to_end.pause()
            self.supervisor.stop(job, lambda: self.feeder.files)
        finally:
            self.feeder.resume()
            if self.end_to_end is not None:
                self.end_to_end.resume()

    def _what_is_there(self) -> Callable[[DriverEvents], bool]:
        """Return what tells of a committed batch whether its job has all the input that there is now."""
        copies, last = self.end_to_end, self.feeder.files - 1
        rows = copies.given if copies is not None else 0

        def is_there(said: DriverEvents) -> bool:
            return copies.arrived >= rows if copies is not None and said.job == COPIES else said.batch >= last

        return is_there

    def let_pass(self, seconds: float) -> None:
        """Let the jobs run on for a while."""
        time.sleep(seconds)
