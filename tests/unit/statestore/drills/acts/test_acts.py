"""A drill of steps: what it writes down, however it ends, and the verdict that follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from statestore.drills.acts import total_loss_job
from statestore.drills.acts.acts import Acts, perform
from statestore.drills.journal import CheckEvent, Ended, NotTested, StepEvent, read
from statestore.drills.judge import rows
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


# ---- the job of a total loss


def test_the_input_of_a_batch_is_a_function_of_its_number() -> None:
    first = total_loss_job.inputs([0])
    assert first[["batch", "key", "amount"]].head(3).values.tolist() == [[0, "k0", 0], [0, "k1", 919], [0, "k2", 838]]
    assert total_loss_job.inputs([0, 1]).query("batch == 1")["key"].iloc[0] == f"k{200 % 7}"


def test_every_key_has_a_row_in_every_batch_with_its_totals_so_far() -> None:
    expected = total_loss_job.expected(range(3))
    assert {batch: len(found) for batch, found in expected.batches.items()} == {0: 7, 1: 7, 2: 7}
    assert sum(row.order for row in expected.batches[2]) == 3 * total_loss_job.ROWS
    k0 = [value for value in range(400) if value % 7 == 0]
    (row,) = (row for row in expected.batches[1] if row.key == "k0")
    message = {"key": "k0", "count": len(k0), "sum": sum(value * 7919 % 1000 for value in k0), "batch": 1}
    assert row == rows.parse("k0", json.dumps(message).encode())
