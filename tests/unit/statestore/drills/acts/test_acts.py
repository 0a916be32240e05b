"""A drill of steps: what it writes down, however it ends, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from statestore.drills.acts.acts import Acts, perform
from statestore.drills.journal import CheckEvent, Ended, NotTested, StepEvent, read
from statestore.drills.judge.findings import Verdict
from statestore.drills.record import JOURNAL
from statestore.drills.report.summary import summarize
from statestore.errors import Damaged, Unavailable


def drill(folder: Path, act: Callable[[Acts], None]) -> Path:
    return perform("rehearsal", folder, "statestore drill rehearse bk://z:1/q", act)


def good(acts: Acts) -> None:
    with acts.step("restore") as note:
        note.detail = "batch 7"
    acts.check("the state is the same", True, "3 rows")
    acts.not_tested("the sink", "none was named")


def test_steps_checks_and_gaps_are_written_down(tmp_path: Path) -> None:
    path = drill(tmp_path, good)
    assert path == tmp_path / JOURNAL
    _, step, check, gap, ended = read(path)
    assert isinstance(step, StepEvent)
    assert (step.name, step.detail) == ("restore", "batch 7")
    assert isinstance(check, CheckEvent)
    assert check.passed
    assert isinstance(gap, NotTested)
    assert ended == Ended(t=ended.t)
    assert summarize(read(path)).summary.verdict is Verdict.PASS


def failing(error: BaseException) -> Callable[[Acts], None]:
    def act(acts: Acts) -> None:
        good(acts)
        with acts.step("compare"):
            raise error

    return act


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (KeyboardInterrupt(), Verdict.UNKNOWN),
        (Unavailable("no bookie answers"), Verdict.UNKNOWN),
        (Damaged("entry 3 is not what was written"), Verdict.FAIL),
    ],
)
def test_what_goes_wrong_is_no_pass(error: BaseException, verdict: Verdict, tmp_path: Path) -> None:
    events = read(drill(tmp_path, failing(error)))
    assert summarize(events).summary.verdict is verdict
    assert [event.detail for event in events if isinstance(event, StepEvent)] == ["batch 7", f"failed: {error}"]


def test_a_failed_check_fails_the_drill(tmp_path: Path) -> None:
    path = drill(tmp_path, lambda acts: acts.check("the state is the same", False, "3 rows, live 4"))
    assert summarize(read(path)).summary.verdict is Verdict.FAIL
