"""Keeps the driver and its jobs running, as an operator of a job would: what ends is started again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from statestore.drills.chaos.driver import Driver
from statestore.drills.chaos.driver_events import DriverEvents, Word
from statestore.drills.chaos.job import DrillJobSettings, JobSpec
from statestore.drills.chaos.recovery import Recovery
from statestore.drills.journal import TransactionsEvent
from statestore.errors import StateStoreError

_REFUSALS = ("IdentityMismatch", "StaleBatch", "DamagedLog")
_AGAIN_S = 1.0
_POLL_S = 0.1
PATIENCE_S = 480.0


class Stalled(StateStoreError):
    """Something that a drill waited for did not happen in time. The message ends with the driver's last words."""


class StartRefused(StateStoreError):
    """A job was refused, though nothing was done to it that should have this effect."""


class Launch(Protocol):
    """Starts a driver process."""

    def __call__(self, settings: DrillJobSettings, log: Path, hear: Callable[[Driver, DriverEvents], None]) -> Driver:
        """See `Driver`."""
        ...


@dataclass(slots=True)
class Running:
    """A job, and what it has done so far, over all drivers.

    Attributes:
        wanted: whether it should run. up: whether it was started, and has not ended since.
        started: whether its query runs, as far as was heard.
        committed: its newest committed batch; -1: none.
        failure: why it ended last time; None: it didn't, or was stopped.
        first: whether this run has committed nothing yet.
        opened: transactions.
        asked: whether the commit of the batch in hand was sent, and not yet answered.
        in_doubt: commits that were sent and never answered with success, so that only the sink's log could tell.
        replayed: batches that Spark handed over again after a restart, and that were skipped.
        handed_again: batches that Spark handed over again, skipped or not. newest: the newest that it handed over.
        skipped: the batches that were in the output already when a driver was handed them.
        last, last_at: what was said of it last, and when by this process's clock.
    """

    spec: JobSpec
    wanted: bool = False
    up: bool = False
    started: bool = False
    committed: int = -1
    failure: str | None = None
    again_at: float = 0.0
    first: bool = True
    opened: int = 0
    asked: bool = False
    in_doubt: int = 0
    replayed: int = 0
    handed_again: int = 0
    newest: int = -1
    skipped: set[int] = field(default_factory=set)
    last: DriverEvents | None = None
    last_at: float = 0.0

    def see(self, said: DriverEvents) -> None:
        """Take note."""
        self.last, self.last_at = said, time.monotonic()
        # The answer comes next, or a sign that none will come: the batch is tried again, or is over, or another
        # driver has it.
        self.in_doubt += self.asked and said.word is not Word.ANSWERED and said.word is not Word.HELD
        self.asked = said.word is Word.SENT or (self.asked and said.word is Word.HELD)
        if said.word is Word.STARTED:
            self.first = self.started = True
        elif said.word is Word.BEGAN:
            self.handed_again += said.batch <= self.newest
            self.newest = max(self.newest, said.batch)
        elif said.word is Word.OPENED:
            self.opened += 1
        elif said.word is Word.COMMITTED:
            self._committed(said)
        elif said.word in (Word.FAILED, Word.STOPPED):
            self.up = self.started = False
            self.failure = said.text if said.word is Word.FAILED else None
            self.again_at = time.monotonic() + _AGAIN_S

    @property
    def in_hand(self) -> int | None:
        """The batch that it is at; None: none, or it is down."""
        return self.newest if self.started and self.newest > self.committed else None

    def can_stop(self, files: int) -> bool:
        """Whether it has committed all files. A reader of a topic does so when it is told to stop."""
        return self.up and (self.started if self.spec.source else self.committed == files - 1)

    def in_words(self) -> str:
        """How it is, for an error that says why nothing happens."""
        how = "up" if self.up else "down"
        last = "nothing was heard of it"
        if self.last is not None:
            age = time.monotonic() - self.last_at
            last = f"last heard {age:.0f} s ago: {self.last.word} batch {self.last.batch} {self.last.text}".rstrip()
        failure = f"; it failed: {self.failure}" if self.failure else ""
        return f"{self.spec.job} is {how}, its newest committed batch is {self.committed}; {last}{failure}"

    def _committed(self, said: DriverEvents) -> None:
        if said.skipped:
            self.replayed += self.first
            self.skipped.add(said.batch)
        self.committed = max(self.committed, said.batch)
        self.first = False

    def transactions(self) -> TransactionsEvent:
        """The outcome of its transactions: each batch is one that was committed."""
        committed = self.committed + 1
        aborted = max(0, self.opened - committed)
        return TransactionsEvent(
            job=self.spec.job,
            opened=self.opened,
            committed=committed,
            aborted=aborted,
            unknown_resolved=self.in_doubt,
            replayed=self.replayed,
            handed_again=self.handed_again,
        )


class Supervisor:
    """One driver at a time, and the jobs in it. All but `hear` is for one thread."""

    def __init__(self, settings: DrillJobSettings, jobs: Sequence[JobSpec], log: Path, launch: Launch = Driver) -> None:
        self.jobs: Mapping[str, Running] = {spec.job: Running(spec) for spec in jobs}
        self.recovery: Recovery | None = None
        self._settings, self._log, self._launch = settings, log, launch
        self._driver: Driver | None = None
        self._former: dict[Driver, list[DriverEvents]] = {}
        self._counts: Counter[tuple[Word, str]] = Counter()
        self._states: dict[str, DriverEvents] = {}
        self._tried: str = ""
        self._changed = threading.Condition()

    @property
    def driver(self) -> Driver:
        """The driver that runs the jobs."""
        assert self._driver is not None
        return self._driver

    @property
    def committed(self) -> int:
        """How many files the slowest job that reads them has committed."""
        return min(running.committed for running in self.jobs.values() if not running.spec.source) + 1

    def hear(self, driver: Driver, said: DriverEvents) -> None:
        """Take note of what a driver says; called by its thread."""
        with self._changed:
            if driver in self._former:
                self._former[driver].append(said)
                return
            if said.job in self.jobs:
                self.jobs[said.job].see(said)
            self._counts[said.word, said.job] += 1
            if said.word is Word.TRIED:
                self._tried = said.text
            if said.word is Word.STATE:
                self._states[said.job] = said
            if self.recovery is not None:
                self.recovery.see(said)
            self._changed.notify_all()

    def start(self) -> None:
        """Start all jobs, and wait until each has committed a batch."""
        for running in self.jobs.values():
            running.wanted = True
        self.wait(lambda: all(job.committed >= 0 for job in self.jobs.values()), "the first batch of each job")

    def use(self, master: str) -> None:
        """Run the jobs on another of Spark's masters, if they don't run on it already."""
        if self._settings.master == master:
            return
        self._settings = replace(self._settings, master=master)
        self.kill()
        self.one_more(f"a batch on {master}")

    def one_more(self, what: str) -> None:
        """Wait until each job has committed another batch."""
        before = {job: self.count(Word.COMMITTED, job) for job in self.jobs}
        self.wait(lambda: all(self.count(Word.COMMITTED, job) > count for job, count in before.items()), what)

    def kill(self) -> None:
        """SIGKILL the driver and all that belongs to it. The next wait starts another."""
        if self._driver is not None:
            self._driver.kill()

    def replace(self) -> Driver:
        """Start another driver beside the one that runs, which is no longer looked after; return the former."""
        with self._changed:
            former = self.driver
            self._former[former] = []
            self._driver = None
        return former

    def heard_of(self, former: Driver) -> list[DriverEvents]:
        """The words of a former driver since it was replaced."""
        with self._changed:
            return list(self._former[former])

    def late_commits(self, former: Driver) -> list[str]:
        """The batches that a former driver has committed after another one had taken its place.

        Its word alone doesn't tell: it may have stood still between the commit and the word. Then the batch was in the
        output when the other driver was handed it, and that one skipped it. Ask once each job has run in the other.
        """
        with self._changed:
            return [
                f"{said.job} {said.batch}"
                for said in self._former[former]
                if said.word is Word.COMMITTED and not said.skipped and said.batch not in self.jobs[said.job].skipped
            ]

    def close(self) -> None:
        """SIGKILL every driver that may be left."""
        for driver in [*self._former, *([self._driver] if self._driver is not None else [])]:
            driver.kill()

    def count(self, word: Word, job: str) -> int:
        """How often something was said of a job so far."""
        with self._changed:
            return self._counts[word, job]

    def stop(self, job: str, files: Callable[[], int]) -> None:
        """Stop a job when it has committed all `files`, or what its topic holds; nothing may be added meanwhile.

        Its output is not ahead of its checkpoint then.
        """
        running = self.jobs[job]
        while True:
            self.wait(lambda: running.can_stop(files()), f"{job} to be done with its input")
            self.driver.tell("stop", running.spec)
            self.wait(lambda: not running.up, f"{job} to stop", keep_up=False)
            if running.failure is None:
                running.wanted = False
                return

    def try_to_start(self, job: str) -> str | None:
        """Start a job that may be refused: return why it was, or None once it has committed a batch."""
        running = self.jobs[job]
        before = self.count(Word.COMMITTED, job)
        running.failure, running.up = None, True
        self.driver.tell("start", running.spec)
        self.wait(
            lambda: running.failure is not None or self.count(Word.COMMITTED, job) > before,
            f"{job} to be refused or to commit a batch",
            keep_up=False,
        )
        running.wanted = running.failure is None
        return running.failure

    def move(self, job: str, *, checkpoint: str | None = None, sink: str | None = None) -> None:
        """Start a job that is down with another checkpoint or sink, and keep it running from now on."""
        running = self.jobs[job]
        spec = running.spec
        running.spec = replace(spec, checkpoint=checkpoint or spec.checkpoint, sink=sink or spec.sink)
        running.failure, running.wanted = None, True

    def state(self, job: str) -> tuple[tuple[str, int, int], ...]:
        """Return the rows of a job's state; the job must be down."""
        failed = self.count(Word.FAILED, job)
        self._states.pop(job, None)
        self.driver.tell("state", self.jobs[job].spec)
        self.wait(lambda: job in self._states or self.count(Word.FAILED, job) > failed, f"the state of {job}")
        if job not in self._states:
            raise Stalled(f"The state of {job} can't be read: {self.jobs[job].failure}")
        return self._states[job].state

    def wait(self, true: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S, keep_up: bool = True) -> None:
        """Wait until something is true, starting again what ends meanwhile.

        Raises:
            Stalled: it does not happen in time.
            Refused: a job is refused that should not be.
        """
        deadline = time.monotonic() + timeout_s
        while not true():
            if keep_up:
                self._tend()
            if time.monotonic() > deadline:
                raise Stalled(f"Waited {timeout_s:g} s for {what}. {self._in_words()}")
            with self._changed:
                self._changed.wait(_POLL_S)

    def _in_words(self) -> str:
        jobs = ". ".join(job.in_words() for job in self.jobs.values())
        tried = f" The last try that failed: {self._tried}." if self._tried else ""
        words = self._driver.last_words() if self._driver is not None else ""
        return f"{jobs}.{tried}\nThe driver's last words:\n{words}"

    def _tend(self) -> None:
        if self._driver is None or not self._driver.alive:
            if self._driver is not None:
                self._driver.kill()  # what is left of it
                if self.recovery is not None:
                    self.recovery.notice("the driver is gone")
            with self._changed:
                for running in self.jobs.values():
                    running.up, running.started, running.again_at = False, False, 0.0
                self._driver = self._launch(self._settings, self._log, self.hear)
        for job, running in self.jobs.items():
            if not running.wanted or running.up:
                continue
            if running.failure is not None and running.failure.startswith(_REFUSALS):
                raise StartRefused(f"{job} was refused: {running.failure}")
            if time.monotonic() >= running.again_at:
                running.up, running.failure = True, None
                self.driver.tell("start", running.spec)
