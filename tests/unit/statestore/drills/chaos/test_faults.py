"""What each fault does, in which order, on a stage where nothing is real."""

from __future__ import annotations

import random
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eos.local import LocalError
from eos.local.parts import ClusterPorts, Plan
from statestore.drills.chaos.driver_events import DriverEvents, Word
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults import FAULTS, checkpoint
from statestore.drills.chaos.feed import Feeder
from statestore.drills.chaos.job import JobSpec
from statestore.drills.chaos.supervisor import Running
from statestore.drills.journal import CaughtUp, CheckEvent, Fault, PlannedFault, Recovered, StepEvent

PARTS = {part.name: part for part in Plan(ClusterPorts(1, (2, 3, 4), (5, 6), (7, 8)), {}, "1m", False, 4).parts(Path())}


class Recorder:
    """Everything that a fault may touch; each call becomes a line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def part(self, name: str, **attributes: Any) -> Any:
        return _Recorded(self, name, attributes)


class _Recorded:
    def __init__(self, recorder: Recorder, name: str, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes, _recorder=recorder, _name=name)

    def __getattr__(self, word: str) -> Any:
        if word.startswith("__"):
            raise AttributeError(word)
        return lambda *arguments, **_: self._recorder.lines.append(" ".join([self._name, word, *map(str, arguments)]))


class FakeSupervisor:
    """Jobs that say at once what is waited for."""

    def __init__(self, recorder: Recorder) -> None:
        self.jobs = {"rows": SimpleNamespace(spec=None), "sums": SimpleNamespace(spec=None)}
        self.driver = recorder.part(
            "driver",
            workers=lambda: [recorder.part("worker")],
            planners=lambda: [recorder.part("planner")],
            executors=self._executors,
        )
        self.recovery: object = None
        self._recorder, self._count = recorder, 0

    def _executors(self) -> list[Any]:
        return [self._recorder.part(f"executor {pid}", pid=pid, children=lambda recursive: []) for pid in (1, 2)]

    def count(self, word: Word, job: str) -> int:
        self._count += 1
        return self._count

    def wait(self, true: Any, what: str, *_: Any) -> None:
        self._recorder.lines.append(f"wait for {what}")
        while not true():
            pass

    def kill(self) -> None:
        self._recorder.lines.append("driver kill")

    def replace(self) -> Any:
        return self.driver

    def one_more(self, what: str) -> None:
        self._recorder.lines.append(f"wait for {what}")

    def heard_of(self, driver: object) -> list[DriverEvents]:
        return [DriverEvents(Word.FAILED, job, text="Fenced: bye") for job in self.jobs]

    def late_commits(self, driver: object) -> list[str]:
        return []


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def stage(recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultTargets:
    members = {name: recorder.part(name, part=part) for name, part in PARTS.items()}
    monkeypatch.setattr("statestore.drills.chaos.faults.cluster._read_only", lambda member: True)
    here, really_sleep = threading.get_ident(), time.sleep

    def sleep(seconds: float) -> None:
        if threading.get_ident() == here:
            recorder.lines.append("time passes")
        else:  # a thread that another test has left
            really_sleep(seconds)

    monkeypatch.setattr("time.sleep", sleep)

    def write(event: Any) -> None:
        if isinstance(event, Fault):
            recorder.lines.append("FAULT")
        elif isinstance(event, CheckEvent):
            recorder.lines.append(f"{'passed' if event.passed else 'failed'}: {event.name}")
        elif isinstance(event, StepEvent):
            recorder.lines.append(f"step: {event.name}")

    class Cluster:
        def __getitem__(self, name: str) -> Any:
            return members[name]

        def launch(self, name: str) -> None:
            threshold = next(
                line for line in members[name].part.configuration.splitlines() if line.startswith("diskUsageThreshold")
            )
            recorder.lines.append(f"{name} launch {threshold}")

        def restart(self, name: str) -> None:
            assert members[name].part == PARTS[name]
            recorder.lines.append(f"{name} restart")

    links: Any = [recorder.part(f"link-{number}", connections=2) for number in range(3)]
    supervisor: Any = FakeSupervisor(recorder)
    cluster: Any = Cluster()
    feeder = Feeder(tmp_path, lambda: 0, 1, 1)
    made = FaultTargets(cluster, supervisor, feeder, links[:2], links[2], "bk://d", {}, tmp_path, 15.0, write)
    made.fault = PlannedFault(3, "kind", "family")
    return made


def lines(stage: FaultTargets, recorder: Recorder, kind: str, seed: int = 1) -> list[str]:
    FAULTS[kind](stage, random.Random(seed))
    assert stage.supervisor.recovery is not None
    return recorder.lines


@pytest.mark.parametrize("kind", ["broker-kill", "bookie-kill", "zookeeper-kill"])
def test_a_killed_member_is_started_again(stage: FaultTargets, recorder: Recorder, kind: str) -> None:
    done = lines(stage, recorder, kind)
    name = done[1].split()[0]
    assert name.startswith(kind.split("-")[0])
    assert done[1:] == [f"{name} kill", "FAULT", "time passes", f"{name} restart"]


@pytest.mark.parametrize("failures", [2, 3])
def test_a_member_that_ends_while_it_starts_is_started_once_more(
    stage: FaultTargets, recorder: Recorder, failures: int
) -> None:
    really, left = stage.cluster.restart, iter(range(failures))

    def restart(name: str) -> None:
        if next(left, None) is not None:
            raise LocalError("it ended while starting")
        really(name)

    stage.cluster.restart = restart  # type: ignore[method-assign]
    with nullcontext() if failures < 3 else pytest.raises(LocalError, match="ended while starting"):
        lines(stage, recorder, "broker-kill")
        assert recorder.lines[-1].endswith("restart")
    assert sum("which failed" in line for line in recorder.lines) == 2


@pytest.mark.parametrize("kind", ["broker-kill", "broker-lost", "bookie-pause", "zookeeper-kill", "bookie-disk-full"])
def test_a_member_that_has_ended_by_itself_is_started_before_a_fault_hits_it(
    stage: FaultTargets, recorder: Recorder, kind: str
) -> None:
    for name in PARTS:
        stage.cluster[name].__dict__["pid"] = None
    done = [line for line in lines(stage, recorder, kind) if line != "time passes"]
    name = done[0].split()[0]
    assert done[:2] == [f"{name} restart", f"step: fault 3, kind: start {name}"]
    assert done[2].startswith((f"{name} kill", f"{name} pause"))


@pytest.mark.parametrize("kind", ["broker-pause", "bookie-pause", "zookeeper-pause", "driver-pause"])
def test_what_is_paused_goes_on(stage: FaultTargets, recorder: Recorder, kind: str) -> None:
    done = lines(stage, recorder, kind)
    name = done[1].split()[0]
    assert done[1:] == [f"{name} pause", "FAULT", "time passes", f"{name} resume"]


def test_every_member_of_a_kind_is_met_by_some_seed(stage: FaultTargets, recorder: Recorder) -> None:
    for seed in range(20):
        lines(stage, recorder, "bookie-kill", seed)
    assert {line for line in recorder.lines if line.endswith("kill")} == {
        f"bookie-{number} kill" for number in range(3)
    }


@pytest.mark.parametrize(("link", "names"), [("broker-link", ["link-0", "link-1"]), ("state-link", ["link-2"])])
def test_links_are_broken_together_and_heal(
    stage: FaultTargets, recorder: Recorder, link: str, names: list[str]
) -> None:
    wait = "wait for a connection to " + ("ZooKeeper" if link == "state-link" else "both brokers")
    for kind, word in (("delay", "delay"), ("half-open", "swallow")):
        recorder.lines.clear()
        done = [
            line if line == wait else " ".join(line.split()[:2]) for line in lines(stage, recorder, f"{link}-{kind}")
        ]
        heal = [f"{name} heal" for name in names]
        assert done[1:] == [wait, *(f"{name} {word}" for name in names), "FAULT", "time passes", *heal]
    recorder.lines.clear()
    assert lines(stage, recorder, f"{link}-cut")[1:] == [wait, *(f"{name} cut" for name in names), "FAULT"]


@pytest.mark.parametrize("kind", ["cut", "delay", "half-open"])
def test_a_link_is_broken_when_something_passes_through_it(stage: FaultTargets, recorder: Recorder, kind: str) -> None:
    counts = iter([0, 0, 2, 2])

    class Link:
        connections = property(lambda self: next(counts))

        def __getattr__(self, word: str) -> Any:
            assert next(counts, None) in (2, None), "nothing passes yet"
            return lambda *_: None

    stage.state_link = Link()  # type: ignore[assignment]
    lines(stage, recorder, f"state-link-{kind}")


def test_a_bookie_with_a_full_disk_gets_its_own_settings_back(stage: FaultTargets, recorder: Recorder) -> None:
    done = lines(stage, recorder, "bookie-disk-full")
    name = done[0].split()[0]
    assert done == [
        f"{name} kill",
        "FAULT",
        f"{name} launch diskUsageThreshold=0.00003",
        "passed: fault 3, kind: the bookie is read-only",
        "time passes",
        f"{name} restart",
    ]


def test_a_driver_is_killed_between_two_moments(stage: FaultTargets, recorder: Recorder) -> None:
    assert lines(stage, recorder, "driver-kill") == ["time passes", "driver kill", "FAULT"]


def test_a_second_driver_takes_over_before_the_first_wakes_up(stage: FaultTargets, recorder: Recorder) -> None:
    done = lines(stage, recorder, "driver-second")
    assert done[1:5] == ["driver pause", "FAULT", "wait for a batch of each job in the second driver", "driver resume"]
    assert done[-3:] == [
        "passed: fault 3, kind: the first driver ends when it wakes up",
        "passed: fault 3, kind: the first driver commits no batch any more",
        "driver kill",
    ]


def test_one_of_two_executors_is_killed(stage: FaultTargets, recorder: Recorder) -> None:
    done = lines(stage, recorder, "executor-kill")
    assert done[-2].endswith("kill")
    assert done[-2].startswith("executor")
    assert done[-1] == "FAULT"


def test_an_executor_of_a_standalone_cluster_is_killed(stage: FaultTargets, recorder: Recorder) -> None:
    executors = stage.supervisor.driver.executors
    stage.supervisor.driver.executors = lambda: []  # type: ignore[method-assign]
    stage.standalone = recorder.part("cluster", executors=executors)
    assert lines(stage, recorder, "executor-kill")[-2:] in (["executor 1 kill", "FAULT"], ["executor 2 kill", "FAULT"])


def test_a_killed_node_is_started_again(stage: FaultTargets, recorder: Recorder) -> None:
    executors = stage.supervisor.driver.executors
    stage.standalone = recorder.part("cluster", executors=executors, workers=2)
    done = lines(stage, recorder, "node-kill")
    number = done[2].split()[-1]
    assert done[2:] == [
        f"cluster kill_worker {number}",
        "FAULT",
        "time passes",
        f"cluster start_worker {number}",
        "cluster wait_for_workers",
    ]


def test_a_lost_broker_comes_back_only_when_the_jobs_have_long_gone_on(stage: FaultTargets, recorder: Recorder) -> None:
    done = lines(stage, recorder, "broker-lost")
    name = done[1].split()[0]
    assert done[1:3] == [f"{name} kill", "FAULT"]
    batches = [line for line in done[3:] if line.startswith("wait for batch")]
    assert done[3:] == [*batches, f"{name} restart"]
    assert len(batches) >= 3


@pytest.mark.parametrize(
    ("kind", "which", "what"),
    [("worker-kill", "workers", "Python workers"), ("planner-kill", "planners", "a planner of micro-batches")],
)
def test_workers_and_planners_are_killed_after_a_batch_began(
    stage: FaultTargets, recorder: Recorder, kind: str, which: str, what: str
) -> None:
    there = iter([[], [], [recorder.part("one"), recorder.part("another")]])
    setattr(stage.supervisor.driver, which, lambda: next(there))
    killed = ["one kill", "another kill"]
    begun = ["wait for a batch to begin", "time passes"]
    assert lines(stage, recorder, kind) == [*begun, f"wait for {what}", *killed, "FAULT"]


class FakeEndToEnd:
    """The job from topic to topic: what its readers have seen, and what it was told."""

    def __init__(self, recorder: Recorder) -> None:
        self.given, self.arrived = 500, 100
        self._recorder = recorder

    def pause(self) -> None:
        self._recorder.lines.append("input pause")

    def resume(self) -> None:
        self._recorder.lines.append("input resume")


def test_the_job_from_topic_to_topic_has_caught_up_when_its_output_has_what_its_input_had(
    stage: FaultTargets, recorder: Recorder
) -> None:
    ends: Any = FakeEndToEnd(recorder)
    stage.end_to_end = ends
    stage.supervisor.jobs = {"copies": Running(JobSpec("copies", False, "t", "s", "c", "input"), newest=4)}
    stage.supervisor.jobs["copies"].see(DriverEvents(Word.STARTED, "copies"))
    stage.supervisor.jobs["copies"].see(DriverEvents(Word.BEGAN, "copies", 5))
    written: list[Any] = []
    stage.write = written.append
    lines(stage, recorder, "planner-kill")
    assert written[0].detail.endswith("; copies was in the middle of batch 5")
    ends.given = 900  # after the fault
    for batch, arrived in ((6, 499), (7, 500)):
        assert isinstance(written[-1], Recovered) == (batch == 7)
        ends.arrived = arrived
        stage.supervisor.recovery.see(DriverEvents(Word.BEGAN, "copies", batch))  # type: ignore[union-attr]
        stage.supervisor.recovery.see(DriverEvents(Word.COMMITTED, "copies", batch))  # type: ignore[union-attr]
    assert isinstance(written[-1], CaughtUp)


def test_no_input_grows_while_a_job_is_stopped(stage: FaultTargets, recorder: Recorder) -> None:
    ends: Any = FakeEndToEnd(recorder)
    stage.end_to_end = ends
    stage.supervisor.stop = lambda job, files: recorder.lines.append(f"stop {job}")  # type: ignore[method-assign]
    stage.stop("copies")
    assert recorder.lines == ["input pause", "stop copies", "input resume"]


@pytest.mark.parametrize(
    ("answers", "passed"),
    [
        (["DamagedLog: empty"], True),
        (["InvalidInput: no broker", "DamagedLog: empty"], True),
        ([None], False),
        (["InvalidInput: no broker"] * 5, False),
    ],
)
def test_a_refusal_is_asked_for_until_the_broker_is_ready(
    stage: FaultTargets, recorder: Recorder, answers: list[str | None], passed: bool
) -> None:
    left = iter(answers)
    stage.supervisor.try_to_start = lambda job: next(left)  # type: ignore[method-assign]
    checkpoint._expect(stage, "rows", "DamagedLog", "refused")
    assert recorder.lines == [f"{'passed' if passed else 'failed'}: fault 3, kind: refused"]
    assert list(left) == []
