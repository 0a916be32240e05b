from __future__ import annotations

from statestore.drills.chaos.driver_events import DriverEvents, Word
from statestore.drills.chaos.recovery import Recovery
from statestore.drills.journal import CaughtUp, Detected, Event, FencedEvent, Recovered


def followed(*told: DriverEvents, files: int = 3) -> tuple[Recovery, list[Event]]:
    written: list[Event] = []
    recovery = Recovery(7, ("rows", "sums"), lambda said: said.batch >= files - 1, written.append)
    for said in told:
        recovery.see(said)
    return recovery, written


def began(job: str, batch: int) -> DriverEvents:
    return DriverEvents(Word.BEGAN, job, batch)


def committed(job: str, batch: int) -> DriverEvents:
    return DriverEvents(Word.COMMITTED, job, batch)


def test_jobs_have_recovered_when_each_has_committed_a_batch_that_it_began_after_the_fault() -> None:
    recovery, written = followed(committed("rows", 1), began("sums", 1), committed("sums", 1))
    assert (recovery.recovered, written) == (False, []), "rows had begun its batch before the fault"
    recovery.see(began("rows", 2))
    recovery.see(committed("rows", 2))
    assert recovery.recovered
    assert written == [Recovered(7, "batch 2 of rows")]


def test_jobs_have_caught_up_when_each_has_committed_the_files_that_were_there() -> None:
    recovery, written = followed(
        *(said for batch in (1, 2) for said in (began("rows", batch), committed("rows", batch))),
        began("sums", 1),
        committed("sums", 1),
    )
    assert (recovery.recovered, recovery.over) == (True, False)
    recovery.see(began("sums", 2))
    recovery.see(committed("sums", 2))
    assert recovery.over
    assert written == [Recovered(7, "batch 1 of sums"), CaughtUp(7, "batch 2 of sums")]
    recovery.see(DriverEvents(Word.TRIED, text="of the next fault"))
    recovery.notice("nothing")
    assert len(written) == 2


def test_what_notices_the_fault_first_is_written_down() -> None:
    recovery, written = followed(
        DriverEvents(Word.TRIED, text="try 1 failed"),
        DriverEvents(Word.FAILED, "rows", text="gone"),
        DriverEvents(Word.FENCED, "rows"),
    )
    recovery.notice("the driver is gone")
    assert written == [Detected(7, "try 1 failed"), FencedEvent(7, "rows")]
