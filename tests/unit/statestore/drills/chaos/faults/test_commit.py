"""The faults that are aimed at a step of a batch, on a driver that only pretends: it takes the steps and can be killed.

The supervisor, its counts and the observer that holds batches are the real ones.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eos.steps import Phase, Step
from statestore.drills.chaos import driver_events as words
from statestore.drills.chaos.driver_events import DriverEvents, Watch, Word
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults import FAULTS, commit
from statestore.drills.chaos.frames import FrameBoundary
from statestore.drills.chaos.job import DrillJobSettings, JobSpec
from statestore.drills.chaos.plan import FRAMES
from statestore.drills.chaos.supervisor import Supervisor
from statestore.drills.journal import CheckEvent, Event, Fault, PlannedFault
from tests.waiting import PATIENCE_S

ROWS = JobSpec("rows", False, "t", "s", "c")


class World:
    """Spark's checkpoint, the sink's log and the links, which outlive drivers.

    Attributes:
        noted: batches that Spark has noted.
        log: batches that are committed.
        answers: whether answers arrive.
        damage: what happens to the log when a driver starts; the job is wrong then.
        lines: what was done to the cluster and the links.
        boundary: at which the links stop; a step of a batch is the frame that is sent there, and its answer.
    """

    def __init__(self, hold: Path) -> None:
        self.hold = hold
        self.noted, self.answers = 0, threading.Event()
        self.answers.set()
        self.log: set[int] = set()
        self.damage: Callable[[], None] = lambda: None
        self.lines: list[str] = []
        self.boundary: FrameBoundary | None = None
        self.threads: list[threading.Thread] = []

    def link(self) -> Any:
        def heal() -> None:
            self.answers.set()
            self.lines.append("heal")

        def stop_at(boundary: FrameBoundary) -> None:
            self.boundary = boundary
            self.lines.append("stop at a boundary")

        return SimpleNamespace(
            swallow_answers=self.answers.clear,
            heal=heal,
            stop_at=stop_at,
            swallow=lambda: self.lines.append("swallow"),
            cut=lambda: self.lines.append("cut"),
        )


class PretendedDriver:
    """Writes batch after batch."""

    def __init__(self, world: World, hear: Callable[[Any, DriverEvents], None]) -> None:
        self.alive, self._world, self._hear = True, world, hear
        self._watch = Watch("rows", str(world.hold / "rows"))
        self._thread = threading.Thread(target=self._write, daemon=True)
        world.threads.append(self._thread)
        world.damage()

    def tell(self, do: str, spec: JobSpec) -> None:
        self._thread.start()

    def kill(self) -> None:
        self.alive = False

    def last_words(self) -> str:
        return ""

    def say(self, told: DriverEvents) -> None:
        if self.alive:
            self._hear(self, told)

    def _write(self) -> None:
        self.say(DriverEvents(Word.STARTED, "rows"))
        while self.alive:
            batch = self._world.noted
            self.say(DriverEvents(Word.BEGAN, "rows", batch))
            skipped = batch in self._world.log
            if not skipped:
                for step in (Step.OPEN, Step.INTENT, Step.ADD_CONTROL, Step.MARKER):
                    self._pass(step, batch)
                self._at(Step.END_SENT, "before", batch)
                answered = self._world.answers.is_set()
                self._at(Step.END_SENT, "after", batch)
                self._world.log.update([batch] if self.alive else [])
                if answered:
                    self._pass(Step.END_ANSWERED, batch)
                self._world.answers.wait(PATIENCE_S)
            self._pass(Step.RETURN, batch)
            self.say(DriverEvents(Word.COMMITTED, "rows", batch, skipped=skipped))
            self._world.noted += self.alive

    def _pass(self, step: Step, batch: int) -> None:
        self._at(step, "before", batch)
        boundary = self._world.boundary
        for kind in (_FRAMES.get(step, -1), _FRAMES.get(step, -1) + 1):
            if boundary is not None and not boundary.passes(kind):
                self._world.lines.append(f"silent before {kind}")
                self._world.boundary = None
                return
        self._at(step, "after", batch)

    def _at(self, step: Step, phase: Phase, batch: int) -> None:
        _speaker[threading.get_ident()] = self
        if self.alive:
            self._watch(step, phase, batch)


_FRAMES = {Step.OPEN: 50, Step.INTENT: 6, Step.ADD_CONTROL: 52, Step.MARKER: 6, Step.END_ANSWERED: 56}
_speaker: dict[int, PretendedDriver] = {}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(words, "say", lambda told: _speaker[threading.get_ident()].say(told))
    monkeypatch.setattr(commit, "_broker_of", lambda stage, coordinator: f"broker-{coordinator % 2}")
    return World(tmp_path)


@pytest.fixture
def stage(world: World) -> Iterator[tuple[FaultTargets, list[Event]]]:
    def launch(settings: DrillJobSettings, log: Path, hear: Callable[[Any, DriverEvents], None]) -> Any:
        return PretendedDriver(world, hear)

    class Cluster:
        coordinators = 4

        def __getitem__(self, name: str) -> Any:
            return SimpleNamespace(kill=lambda: world.lines.append(f"kill {name}"))

        def restart(self, name: str) -> None:
            world.lines.append(f"restart {name}")

    settings = DrillJobSettings("pulsar://h:1", "l", "in", str(world.hold), "scratch", "local[2]", 30.0, 8.0)
    supervisor = Supervisor(settings, [ROWS], Path("log"), launch)
    events: list[Event] = []
    cluster: Any = Cluster()
    feeder: Any = SimpleNamespace(files=0)
    made = FaultTargets(
        cluster, supervisor, feeder, [world.link()], world.link(), "bk://d", {}, world.hold, 0.01, events.append
    )
    made.fault = PlannedFault(3, "kind", "family")
    made.let_pass = lambda seconds: world.lines.append("time passes")  # type: ignore[method-assign]
    supervisor.start()
    try:
        yield made, events
    finally:
        supervisor.close()
        for thread in world.threads:
            thread.join(PATIENCE_S)


Made = tuple[FaultTargets, list[Event]]


def done(made: Made, kind: str, seed: int = 1) -> dict[str, bool]:
    """Do a fault; return what was checked, and whether it held."""
    stage, events = made
    FAULTS[kind](stage, random.Random(seed))
    assert [event for event in events if isinstance(event, Fault)]
    return {event.name.split(": ")[1]: event.passed for event in events if isinstance(event, CheckEvent)}


@pytest.mark.parametrize("at", commit.BEFORE)
def test_it_stands_still_where_it_is_to_be_killed(stage: Made, at: tuple[Step, Phase], world: World) -> None:
    running = commit._kill_at(stage[0], at)
    assert running.last == DriverEvents(Word.HELD, "rows", world.noted)
    assert not list(world.hold.iterdir()), "the next batch is not held"
    assert running.last.batch not in world.log


@pytest.mark.parametrize(
    ("kind", "seed", "check", "found"),
    [
        ("driver-kill-before-commit", 1, "the batch is written again", (0, 1, 0)),
        ("driver-kill-in-commit", 1, "the commit was in doubt", (1, 1, 0)),
        *(("driver-kill-after-commit", seed, "the batch is skipped", (0, 1, 1)) for seed in range(4)),
        ("commit-answer-lost", 1, "the commit was in doubt", (1, 0, 0)),
    ],
)
def test_the_fate_of_the_batch_is_checked_and_counted(
    stage: Made, kind: str, seed: int, check: str, found: tuple[int, int, int]
) -> None:
    """Counted are the commits that were in doubt, the batches that Spark has handed over again, and the replays."""
    assert done(stage, kind, seed) == {check: True}
    counted = stage[0].supervisor.jobs["rows"].transactions()
    assert (counted.unknown_resolved, counted.handed_again, counted.replayed) == found


def test_a_committed_batch_that_is_written_again_is_found(stage: Made, world: World) -> None:
    world.damage = world.log.clear
    assert done(stage, "driver-kill-after-commit") == {"the batch is skipped": False}


def test_a_batch_that_is_skipped_though_it_was_not_written_is_found(stage: Made, world: World) -> None:
    world.damage = lambda: world.log.add(world.noted)
    assert done(stage, "driver-kill-before-commit") == {"the batch is written again": False}


def test_the_answers_come_again_after_a_while(stage: Made, world: World) -> None:
    done(stage, "commit-answer-lost")
    assert world.lines == ["time passes", "heal"]


def test_an_answer_that_came_all_the_same_is_found(stage: Made) -> None:
    stage[0].broker_links[0].swallow_answers = lambda: None  # type: ignore[method-assign]
    assert done(stage, "commit-answer-lost") == {"the commit was in doubt": False}


def test_the_broker_of_the_coordinator_is_killed_behind_the_commit_and_started_again(stage: Made, world: World) -> None:
    assert done(stage, "broker-kill-in-commit") == {}
    assert world.lines[0] == "time passes"
    assert [line.split()[0] for line in world.lines] == ["time", "kill", "time", "restart"]
    assert len({line.split()[-1] for line in world.lines if "broker" in line}) == 1


def test_a_batch_is_held_for_longer_than_its_transaction_lives(stage: Made, world: World) -> None:
    made, events = stage
    passed: list[float] = []
    made.let_pass = passed.append  # type: ignore[method-assign, assignment]
    assert done(stage, "transaction-timeout") == {}
    assert passed[0] > made.ttl_s
    (fault,) = (event for event in events if isinstance(event, Fault))
    assert fault.detail.startswith("batch ")
    made.supervisor.one_more("the batch goes on")


@pytest.mark.parametrize(("kind", "word"), [("commit-frame-cut", "cut"), ("commit-frame-half-open", "time passes")])
def test_each_frame_of_a_commit_is_met_in_its_turn(stage: Made, world: World, kind: str, word: str) -> None:
    met = []
    for turn in range(FRAMES):
        stage[0].turn = turn
        world.lines.clear()
        checks = done(stage, kind)
        assert checks in ({}, {"the frame was met": True})
        assert world.lines[-2:] == [word, "heal"]
        met += [line for line in world.lines if line.startswith("silent")]
    details = [event.detail for event in stage[1] if isinstance(event, Fault)]
    assert len({detail.partition("just ")[2].partition(" of batch")[0] for detail in details}) == FRAMES
    assert met == [f"silent before {frame}" for frame in (50, 51, 6, 7, 52, 53, 6, 7, 56, 57)]


def test_a_frame_that_is_not_met_is_found(stage: Made, world: World) -> None:
    stage[0].broker_links[0].stop_at = lambda boundary: None  # type: ignore[method-assign]
    assert done(stage, "task-frame-cut") == {"the frame was met": False}
