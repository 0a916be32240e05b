"""The supervisor, with drivers that do what the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statestore.drills.chaos.driver_events import DriverEvents, Word
from statestore.drills.chaos.job import DrillJobSettings, JobSpec
from statestore.drills.chaos.supervisor import Running, Stalled, StartRefused, Supervisor
from statestore.drills.journal import TransactionsEvent

SETTINGS = DrillJobSettings("pulsar://x", "drill", "in", "hold", "scratch", "local[2]", 15, 8)
JOBS = [JobSpec("rows", False, "t", "a", "bk://d/rows"), JobSpec("sums", True, "t2", "b", "bk://d/sums")]
COPIES = JobSpec("copies", False, "t3", "c", "bk://d/copies", source="t4")
Answer = Callable[["FakeDriver", str, JobSpec], None]


def run_on(driver: FakeDriver, do: str, spec: JobSpec) -> None:
    """Commit the next batch of a job that is started, and stop one that is to stop."""
    if do == "start":
        batch = driver.world.next.get(spec.job, 0)
        driver.world.next[spec.job] = batch + 1
        driver.says(Word.STARTED, spec.job)
        driver.says(Word.OPENED, spec.job, batch=batch)
        driver.says(Word.BEGAN, spec.job, batch=batch)
        driver.says(Word.COMMITTED, spec.job, batch=batch)
    elif do == "stop":
        driver.says(Word.STOPPED, spec.job)
    elif do == "state":
        driver.says(Word.STATE, spec.job, state=(("k1", 2, 3),))


class World:
    """All drivers that were started, and how they answer."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.drivers: list[FakeDriver] = []
        self.next: dict[str, int] = {}
        self.supervisor = Supervisor(SETTINGS, JOBS, Path("log"), self.launch)  # type: ignore[arg-type]

    def launch(self, settings: DrillJobSettings, log: Path, hear: Any) -> FakeDriver:
        answer = self.answers.pop(0) if self.answers else run_on
        self.drivers.append(FakeDriver(self, settings, hear, answer))
        return self.drivers[-1]


class FakeDriver:
    def __init__(self, world: World, settings: DrillJobSettings, hear: Any, answer: Answer) -> None:
        self.world, self.settings, self.hear, self.answer = world, settings, hear, answer
        self.alive = True
        self.told: list[tuple[str, str]] = []

    def tell(self, do: str, spec: JobSpec) -> None:
        self.told.append((do, spec.job))
        # As the real one: in a thread of its own, later.
        threading.Thread(target=self.answer, args=(self, do, spec)).start()

    def says(self, word: Word, job: str = "", **fields: Any) -> None:
        self.hear(self, DriverEvents(word, job, **fields))

    def kill(self) -> None:
        self.alive = False

    def last_words(self) -> str:
        return "java.lang.Error"


def failing(text: str) -> Answer:
    return lambda driver, do, spec: driver.says(Word.FAILED, spec.job, text=text)


def test_starts_both_jobs_in_one_driver() -> None:
    world = World()
    world.supervisor.start()
    assert sorted(world.drivers[0].told) == [("start", "rows"), ("start", "sums")]
    assert world.supervisor.committed == 1


def test_a_driver_that_died_is_followed_by_another() -> None:
    world = World()
    world.supervisor.start()
    world.supervisor.kill()
    world.supervisor.wait(lambda: world.supervisor.committed == 2, "the next batch")
    assert [driver.alive for driver in world.drivers] == [False, True]


def test_a_job_that_failed_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statestore.drills.chaos.supervisor._AGAIN_S", 0.0)
    failed: list[str] = []

    def once(driver: FakeDriver, do: str, spec: JobSpec) -> None:
        answer = run_on if spec.job in failed else failing("ConnectionLost: gone")
        failed.append(spec.job)
        answer(driver, do, spec)

    world = World(once)
    world.supervisor.start()
    assert len(world.drivers) == 1
    assert world.drivers[0].told.count(("start", "rows")) == 2


@pytest.mark.parametrize("refusal", ["IdentityMismatch: x", "StaleBatch: x", "DamagedLog: x"])
def test_a_job_that_is_refused_unexpectedly_ends_the_drill(refusal: str) -> None:
    with pytest.raises(StartRefused, match=f"was refused: {refusal}"):
        World(failing(refusal)).supervisor.start()


def test_what_does_not_come_in_time_is_an_error_with_the_last_words() -> None:
    world = World(lambda driver, do, spec: None)
    world.supervisor.jobs["rows"].wanted = True
    job = "rows is up, its newest committed batch is -1; nothing was heard of it"
    with pytest.raises(Stalled, match=rf"Waited 0\.2 s for rain\. {job}(.|\n)*java\.lang\.Error"):
        world.supervisor.wait(lambda: False, "rain", 0.2)


def test_a_job_is_stopped_when_it_is_done_with_its_input_and_not_started_again() -> None:
    world = World()
    supervisor = world.supervisor
    supervisor.start()
    supervisor.stop("rows", lambda: 1)
    assert not supervisor.jobs["rows"].up
    supervisor.wait(lambda: True, "nothing")
    assert world.drivers[0].told.count(("start", "rows")) == 1


def test_a_refusal_that_is_expected_is_returned_and_the_job_stays_down() -> None:
    world = World()
    supervisor = world.supervisor
    supervisor.start()
    supervisor.stop("rows", lambda: 1)
    world.drivers[0].answer = failing("DamagedLog: empty")
    assert supervisor.try_to_start("rows") == "DamagedLog: empty"
    world.drivers[0].answer = run_on
    supervisor.wait(lambda: True, "nothing")
    assert not supervisor.jobs["rows"].up
    supervisor.move("rows", sink="c")
    supervisor.wait(lambda: supervisor.jobs["rows"].committed == 1, "the next batch")
    assert supervisor.jobs["rows"].spec.sink == "c"
    assert supervisor.jobs["rows"].spec.checkpoint == "bk://d/rows"


def test_a_job_that_is_not_refused_runs_on() -> None:
    world = World()
    supervisor = world.supervisor
    supervisor.start()
    supervisor.stop("sums", lambda: 1)
    assert supervisor.try_to_start("sums") is None
    assert supervisor.jobs["sums"].wanted
    assert supervisor.jobs["sums"].committed == 1


def test_what_a_former_driver_says_does_not_count() -> None:
    world = World()
    supervisor = world.supervisor
    supervisor.start()
    first = supervisor.replace()
    supervisor.one_more("a batch in the second driver")
    world.drivers[0].says(Word.COMMITTED, "rows", batch=40)
    world.drivers[0].says(Word.FAILED, "rows", text="Fenced: bye")
    assert supervisor.jobs["rows"].committed == 1
    assert supervisor.jobs["rows"].up
    assert [said.word for said in supervisor.heard_of(first)] == [Word.COMMITTED, Word.FAILED]
    supervisor.close()
    assert not any(driver.alive for driver in world.drivers)


def test_a_word_that_comes_late_is_no_late_commit_where_the_second_driver_skipped_the_batch() -> None:
    """A driver was stopped between its commit and its word; the drill called that a commit after the takeover."""

    def skip_one(driver: FakeDriver, do: str, spec: JobSpec) -> None:
        driver.says(Word.STARTED, spec.job)
        driver.says(Word.BEGAN, spec.job, batch=1)
        driver.says(Word.COMMITTED, spec.job, batch=1, skipped=spec.job == "sums")

    world = World(run_on, skip_one)
    world.supervisor.start()
    first = world.supervisor.replace()
    world.supervisor.one_more("a batch in the second driver")
    for job in ("sums", "rows"):
        world.drivers[0].says(Word.COMMITTED, job, batch=1)
    world.drivers[0].says(Word.COMMITTED, "sums", batch=2)
    world.drivers[0].says(Word.COMMITTED, "rows", batch=0, skipped=True)
    assert world.supervisor.late_commits(first) == ["rows 1", "sums 2"]


def test_another_master_means_another_driver() -> None:
    world = World()
    world.supervisor.start()
    world.supervisor.use("local[2]")
    assert len(world.drivers) == 1
    world.supervisor.use("local-cluster[2,1,512]")
    assert [driver.settings.master for driver in world.drivers] == ["local[2]", "local-cluster[2,1,512]"]


def test_the_state_is_that_which_the_driver_reads() -> None:
    world = World()
    world.supervisor.start()
    world.supervisor.stop("sums", lambda: 1)
    assert world.supervisor.state("sums") == (("k1", 2, 3),)


def test_transactions_are_counted_over_all_drivers() -> None:
    world = World()
    supervisor = world.supervisor
    supervisor.start()
    driver = world.drivers[0]
    driver.says(Word.OPENED, "rows", batch=1)
    driver.says(Word.SENT, "rows", batch=1)
    driver.says(Word.OPENED, "rows", batch=1)  # the log said that it came to nothing
    driver.says(Word.SENT, "rows", batch=1)
    driver.says(Word.COMMITTED, "rows", batch=1, skipped=True)  # a lost answer to the commit
    driver.says(Word.OPENED, "rows", batch=2)
    driver.says(Word.SENT, "rows", batch=2)
    driver.says(Word.HELD, "rows", batch=2)
    driver.says(Word.STARTED, "rows")
    driver.says(Word.COMMITTED, "rows", batch=2, skipped=True)  # its former run had committed it
    driver.says(Word.STARTED, "rows")
    driver.says(Word.COMMITTED, "rows", batch=2, skipped=True)  # Spark had not written down that it is done
    assert supervisor.jobs["rows"].transactions() == TransactionsEvent("rows", 4, 3, 1, 3, 2)


def test_a_commit_that_was_answered_was_never_in_doubt() -> None:
    running = Running(JOBS[0])
    for word in (Word.SENT, Word.HELD, Word.ANSWERED, Word.HELD, Word.COMMITTED, Word.STARTED):
        running.see(DriverEvents(word, "rows", 1))
    assert running.transactions().unknown_resolved == 0


def test_batches_that_spark_hands_over_again_are_counted() -> None:
    running = Running(JOBS[0])
    for batch in (0, 1, 1, 2, 1, 2, 3):
        running.see(DriverEvents(Word.BEGAN, "rows", batch))
    assert running.transactions().handed_again == 3


def test_a_job_that_reads_a_topic_is_stopped_as_soon_as_its_query_runs() -> None:
    world = World()
    world.supervisor = Supervisor(SETTINGS, [*JOBS, COPIES], Path("log"), world.launch)  # type: ignore[arg-type]
    supervisor = world.supervisor
    supervisor.start()
    supervisor.jobs["rows"].committed = supervisor.jobs["sums"].committed = 40
    assert supervisor.committed == 41, "files; a topic has none"
    supervisor.stop("copies", lambda: 1)
    assert not supervisor.jobs["copies"].up
    running = Running(COPIES, up=True)
    assert not running.can_stop(1), "it was told to start, and a query that isn't there can't be stopped"
    running.see(DriverEvents(Word.STARTED, "copies"))
    assert running.can_stop(1)
    running.see(DriverEvents(Word.FAILED, "copies", text="gone"))
    assert not running.can_stop(1)


def test_a_batch_is_in_hand_from_its_beginning_to_its_commit() -> None:
    running = Running(JOBS[0])
    steps = [
        DriverEvents(Word.STARTED),
        DriverEvents(Word.BEGAN, batch=3),
        DriverEvents(Word.COMMITTED, batch=3),
        DriverEvents(Word.BEGAN, batch=4),
    ]
    found = []
    for said in [*steps, DriverEvents(Word.FAILED)]:
        running.see(said)
        found.append(running.in_hand)
    assert found == [None, 3, None, 4, None]
