"""The journal of a drill has its end, however the drill ends, and the verdict follows from it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from eos import version
from statestore.drills.journal import Began, Ended, Journal, read
from statestore.drills.judge.findings import Verdict
from statestore.drills.record import JOURNAL, began, record
from statestore.drills.report.summary import summarize
from statestore.errors import Damaged, InvalidInput, Unavailable

BEGAN = Began(drill="rehearsal", at="2026-01-01T00:00:00+00:00", rerun="statestore drill rehearse bk://z:1/q")


def raising(error: BaseException) -> Callable[[Journal], str]:
    def drill(journal: Journal) -> str:
        raise error

    return drill


def end_of(path: Path) -> Ended:
    last = read(path)[-1]
    assert isinstance(last, Ended)
    return last


def test_a_drill_that_ends_early_says_why(tmp_path: Path) -> None:
    path = record(BEGAN, tmp_path, lambda journal: "the time was out")
    assert path == tmp_path / JOURNAL
    assert (end_of(path).interrupted, end_of(path).reason) == (False, "the time was out")
    with pytest.raises(InvalidInput, match="never written over"):
        record(BEGAN, tmp_path, lambda journal: "")


@pytest.mark.parametrize(
    ("error", "interrupted", "verdict"),
    [
        (KeyboardInterrupt(), True, Verdict.UNKNOWN),
        (Unavailable("no bookie answers"), False, Verdict.UNKNOWN),
        (Damaged("entry 3 is not what was written"), False, Verdict.FAIL),
    ],
)
def test_what_goes_wrong_is_no_pass(error: BaseException, interrupted: bool, verdict: Verdict, tmp_path: Path) -> None:
    path = record(BEGAN, tmp_path, raising(error))
    assert end_of(path).interrupted is interrupted
    assert summarize(read(path)).summary.verdict is verdict


def test_an_interrupt_that_comes_out_as_another_error_is_one_all_the_same(tmp_path: Path) -> None:
    def drill(journal: Journal) -> str:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            return dict[str, str]()["no such key"]

    end = end_of(record(BEGAN, tmp_path, drill))
    assert (end.interrupted, end.reason) == (True, "it was told to stop")


@pytest.mark.parametrize("error", [InvalidInput("there is no checkpoint"), ZeroDivisionError("a defect")])
def test_bad_input_and_defects_are_raised_and_the_journal_has_its_end(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(type(error)):
        record(BEGAN, tmp_path, raising(error))
    assert summarize(read(tmp_path / JOURNAL)).summary.verdict is Verdict.UNKNOWN
    assert end_of(tmp_path / JOURNAL).reason


def test_modules_that_are_not_installed_begin_a_drill_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on PYTHONPATH, or by --py-files."""

    def lacks(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(version, "version", lacks)
    assert began("rehearsal", "statestore drill rehearse bk://z:1/q").versions["spark-pulsar-eos"] == version.UNKNOWN
