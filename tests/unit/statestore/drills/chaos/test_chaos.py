"""The course of a chaos drill, with a cluster, a driver and an oracle that only pretend."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from eos.local import LocalError
from statestore.drills import journal
from statestore.drills.chaos import chaos
from statestore.drills.chaos.chaos import Chaos
from statestore.drills.chaos.driver_events import DriverEvents, Word
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults import FAULTS
from statestore.drills.chaos.job import DrillJobSettings, JobSpec
from statestore.drills.chaos.plan import Family, make_plan, make_rounds
from statestore.drills.chaos.supervisor import Launch, Supervisor
from statestore.drills.journal import CheckEvent, Ended, Event, Sample, StateEvent, TransactionsEvent
from statestore.drills.judge import oracle, rows
from statestore.drills.judge.findings import Account, Readers, Verdict
from statestore.drills.judge.oracle import ReadProgress
from statestore.drills.report.summary import summarize
from tests.waiting import PATIENCE_S

PLAN = make_plan(3, 1, [Family.NETWORK])


class FakeCluster:
    service_url, broker_urls = "pulsar://h:1,h:2", ("pulsar://h:1", "pulsar://h:2")
    zookeeper, admin_url = "h:3", "http://h:4"

    def __init__(self, data: Path, fails: bool = False) -> None:
        self.data, self._fails, self.stopped = data, fails, False

    def __enter__(self) -> FakeCluster:
        if self._fails:
            raise LocalError("No java on the PATH")
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True


class FakeDriver:
    """Both jobs commit every file that there is, until they are told to stop."""

    made: list[FakeDriver]
    refuses = ""
    forgets = 0  # keys of the state

    def __init__(self, settings: Any, log: Path, hear: Any) -> None:
        self.alive, self._hear, self._input = True, hear, Path(settings.input)
        self._running: dict[str, threading.Event] = {}
        self.made.append(self)

    def tell(self, do: str, spec: Any) -> None:
        if do == "start" and self.refuses:
            threading.Timer(0.01, self.says, (Word.FAILED, spec.job), {"text": self.refuses}).start()
        elif do == "start":
            self._running[spec.job] = threading.Event()
            self.says(Word.STARTED, spec.job)
            threading.Thread(target=self._run, args=(spec.job, self._running[spec.job]), daemon=True).start()
        elif do == "stop":
            self._running[spec.job].set()
        else:
            inputs = rows.read_input(self._input)
            found = rows.state(inputs, set(inputs["batch"]))
            state = tuple((key, count, total) for key, (count, total) in found.items())
            self.says(Word.STATE, spec.job, state=state[self.forgets :])

    def says(self, word: Word, job: str, **fields: Any) -> None:
        self._hear(self, DriverEvents(word, job, **fields))

    def kill(self) -> None:
        self.alive = False
        for stop in self._running.values():
            stop.set()

    def last_words(self) -> str:
        return ""

    def _run(self, job: str, stop: threading.Event) -> None:
        batch = 0
        while not stop.wait(0.01):
            if rows.input_file(self._input, batch).exists():
                self.says(Word.BEGAN, job, batch=batch)
                self.says(Word.COMMITTED, job, batch=batch)
                batch += 1
        if self.alive:
            self.says(Word.STOPPED, job)


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeCluster]:
    cluster = FakeCluster(tmp_path / "cluster")
    FakeDriver.made, FakeDriver.refuses, FakeDriver.forgets = [], "", 0

    sampled = threading.Event()

    class LiveFake:
        @property
        def progress(self) -> ReadProgress:
            sampled.set()
            return ReadProgress(7, 1, 30.0)

    def pretend(stage: FaultTargets, chance: object) -> None:
        sampled.wait(PATIENCE_S)  # else a fast drill might be over before the first sample
        stage.done("pretended")

    def judge(job: str, *_: Any, state_equal: bool | None, **__: Any) -> tuple[Account, Readers]:
        account = Account(job, 1, 1, 1, 0, 0, 0, 0, 0, state_equal, {}, Verdict.PASS, "all there")
        return account, Readers(job, 2, 0)

    def supervisor(settings: DrillJobSettings, jobs: Sequence[JobSpec], log: Path) -> Supervisor:
        return Supervisor(settings, jobs, log, launch=cast(Launch, FakeDriver))

    monkeypatch.setattr(chaos, "LocalCluster", lambda **_: cluster)
    monkeypatch.setattr(chaos, "java_flags", lambda tell: ["-Xshare:off"])
    monkeypatch.setattr(chaos, "Supervisor", supervisor)
    monkeypatch.setattr(chaos, "LiveReaders", lambda *_: nullcontext(LiveFake()))
    monkeypatch.setattr(httpx.Client, "request", lambda _, method, url, json: httpx.Response(204))
    monkeypatch.setattr(chaos, "end_later_transactions", lambda *_: None)
    monkeypatch.setattr("statestore.drills.judge.oracle.judge", judge)
    stores = [SimpleNamespace(versions=(1, 2)), SimpleNamespace(versions=(2,))]
    monkeypatch.setattr("statestore.snapshots", lambda *_, **__: SimpleNamespace(stores=stores))
    for name, value in {"_FEED_S": 0.01, "_SAMPLE_S": 0.01, "_SETTLE_S": (0.0, 0.01)}.items():
        monkeypatch.setattr(chaos, name, value)
    for kind in FAULTS:
        monkeypatch.setitem(FAULTS, kind, pretend)
    yield cluster
    assert not any(driver.alive for driver in FakeDriver.made)


class FakeEndToEnd:
    """The job from topic to topic: its output is always as far as its input."""

    given, arrived, output = 9, 9, SimpleNamespace(progress=ReadProgress(9, -1, 4.0))
    lines: list[str]

    def __init__(self, url: str, spec: JobSpec, log: Path, scratch: Path) -> None:
        FakeEndToEnd.lines = [f"{spec.job} from {spec.source.rsplit('/')[-1]} to {spec.topic.rsplit('/')[-1]}"]

    def __enter__(self) -> FakeEndToEnd:
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.append("over")

    def drain(self, supervisor: Supervisor) -> None:
        assert supervisor.jobs["copies"].up
        self.lines.append("drained")

    def account(self) -> journal.AccountEvent:
        self.lines.append("accounted for")
        return journal.AccountEvent("copies", 9, 9, 9, 0, 0, 0, 0, 0, None, {}, Verdict.PASS, "all there")


def drill(folder: Path, minutes: float | None = None, end_to_end: bool = False) -> list[Event]:
    what = Chaos(PLAN, 1, folder / "report", "statestore drill", minutes, end_to_end)
    path = chaos.run(what, lambda line, done: None)
    assert path == folder / "report" / "journal.jsonl"
    return journal.read(path)


def test_each_fault_is_done_and_all_rows_are_accounted_for(tmp_path: Path, pretended: FakeCluster) -> None:
    events = drill(tmp_path)
    report = summarize(events)
    assert report.summary.verdict is Verdict.PASS, report.summary.reasons
    assert [(fault.n, fault.kind) for fault in report.faults] == [(fault.n, fault.kind) for fault in PLAN]
    assert all(fault.recovered_s is not None and fault.caught_up_s is not None for fault in report.faults)
    assert {job.job: job.account.state_equal for job in report.jobs if job.account} == {"rows": None, "sums": True}
    kinds = {type(event) for event in events}
    assert {Sample, StateEvent, TransactionsEvent, journal.NotTested} <= kinds
    assert [event.versions for event in events if isinstance(event, StateEvent)] == [1]
    assert pretended.stopped


def test_the_job_from_topic_to_topic_is_drained_stopped_and_accounted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos, "EndToEnd", FakeEndToEnd)
    report = summarize(drill(tmp_path, end_to_end=True))
    assert report.summary.verdict is Verdict.PASS, report.summary.reasons
    assert [job.job for job in report.jobs] == ["rows", "sums", "copies"]
    assert all(job.account for job in report.jobs)
    assert {found.job for found in report.transactions} == {"rows", "sums", "copies"}
    assert any(sample.job == "copies" and sample.rows_in == 9 for sample in report.samples)
    assert "jobs with a backlog" not in {missing.what for missing in report.not_tested}
    names = ["copies from drill-copies-input to drill-copies", "drained", "accounted for", "over"]
    assert FakeEndToEnd.lines == names


def test_a_state_that_lacks_a_key_is_told_to_the_judge(tmp_path: Path) -> None:
    FakeDriver.forgets = 1
    report = summarize(drill(tmp_path))
    assert {job.job: job.account.state_equal for job in report.jobs if job.account} == {"rows": None, "sums": False}


def test_later_transactions_end_before_a_job_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that was left open shows its harm only then."""
    order: list[str] = []
    judge = oracle.judge

    def judged(job: str, url: str, topic: str, *more: Any, **options: Any) -> tuple[Account, Readers]:
        order.append(f"judged {topic}")
        return judge(job, url, topic, *more, **options)

    monkeypatch.setattr(chaos, "end_later_transactions", lambda url, topic: order.append(f"ended on {topic}"))
    monkeypatch.setattr("statestore.drills.judge.oracle.judge", judged)
    monkeypatch.setattr(chaos, "EndToEnd", FakeEndToEnd)
    drill(tmp_path, end_to_end=True)
    topics = [f"persistent://public/default/drill-{job}" for job in ("rows", "sums")]
    copies = "ended on persistent://public/default/drill-copies"
    assert order == [*(f"{word} {topic}" for topic in topics for word in ("ended on", "judged")), copies]
    assert FakeEndToEnd.lines[-2:] == ["accounted for", "over"]


def test_without_it_the_report_says_that_no_job_had_a_backlog(tmp_path: Path) -> None:
    assert "jobs with a backlog" in {missing.what for missing in summarize(drill(tmp_path)).not_tested}


def test_when_the_time_is_out_the_rows_so_far_are_accounted_for(tmp_path: Path) -> None:
    summary = summarize(drill(tmp_path, minutes=1e-9)).summary
    assert summary.verdict is Verdict.UNKNOWN
    assert "the time was out, and 3 of 3 faults were not done" in " ".join(summary.reasons)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_everything_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretended: FakeCluster, number: signal.Signals
) -> None:
    def interrupt(stage: FaultTargets, chance: object) -> None:
        stage.done("half")
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    monkeypatch.setitem(FAULTS, PLAN[0].kind, interrupt)
    events = drill(tmp_path)
    assert signal.getsignal(number) is before
    assert events[-1].event == "ended"
    assert isinstance(events[-1], Ended)
    assert events[-1].interrupted
    assert summarize(events).summary.verdict is Verdict.UNKNOWN
    assert pretended.stopped


def test_jobs_on_a_standalone_cluster_run_on_its_master_with_short_time_outs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretended: FakeCluster
) -> None:
    made: dict[str, Any] = {}

    def cluster(**options: Any) -> FakeCluster:
        made.update(options)
        return pretended

    def spark(folder: Path, **options: Any) -> Any:
        made.update(options)
        return nullcontext(SimpleNamespace(master="spark://h:7"))

    def grow(stage: FaultTargets, chance: object) -> None:
        made["turns"] = [*made.get("turns", []), (stage.fault.kind, stage.turn)]
        stage.repartitioned.add("rows")
        stage.done("a partition more")

    def driver(settings: DrillJobSettings, log: Path, hear: Any) -> FakeDriver:
        made.update(master=settings.master, request=settings.request_timeout_s, options=settings.options)
        return FakeDriver(settings, log, hear)

    monkeypatch.setattr(chaos, "LocalCluster", cluster)
    monkeypatch.setattr(chaos, "StandaloneCluster", spark)
    monkeypatch.setattr(chaos, "Supervisor", lambda settings, jobs, log: Supervisor(settings, jobs, log, driver))  # type: ignore[arg-type]
    monkeypatch.setitem(FAULTS, "partitions-added", grow)
    plan = make_rounds(2, 1, ["partitions-added", "node-kill"])
    path = chaos.run(Chaos(plan, 1, tmp_path / "report", "statestore drill", standalone=True), lambda line, done: None)
    report = summarize(journal.read(path))
    assert report.summary.verdict is Verdict.PASS, report.summary.reasons
    assert made["master"] == "spark://h:7"
    assert max(made["session_s"], made["timeout_s"], made["request"]) <= 6
    assert made["options"]["fs.bk.session.timeout.ms"] == "6000"
    assert made["turns"] == [("partitions-added", 0), ("partitions-added", 1)]
    assert "the order of a key's rows across partitions" in {missing.what for missing in report.not_tested}


def test_a_job_that_is_refused_is_a_failure(tmp_path: Path) -> None:
    FakeDriver.refuses = "StaleBatch: the output is ahead"
    events = drill(tmp_path)
    assert summarize(events).summary.verdict is Verdict.FAIL
    (check,) = (event for event in events if isinstance(event, CheckEvent))
    assert "rows was refused: StaleBatch" in check.detail or "sums was refused: StaleBatch" in check.detail


def test_what_can_not_be_started_is_said_in_the_journal(tmp_path: Path, pretended: FakeCluster) -> None:
    pretended._fails = True
    events = drill(tmp_path)
    assert isinstance(events[-1], Ended)
    assert events[-1].reason == "No java on the PATH"
    assert summarize(events).summary.verdict is Verdict.UNKNOWN
