"""`statestore savepoint every`: rounds, failures and exit codes."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from statestore.cli.app import typer_app
from statestore.errors import CutFailed, Damaged, InvalidInput, NotFound, StateStoreError, Unavailable
from statestore.savepoints.periodic import Round, Schedule
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.store import SavepointStore

MADE = Round(Savepoint("p-1", "ready", "bk://zk:2181/q", 0, 7), ("p-0",), ("savepoint p-x could not be deleted: why",))


def every(*more: str) -> Any:
    return CliRunner().invoke(typer_app, ["savepoint", "every", "bk://zk:2181/q", *more])


def test_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Schedule, "run_once", lambda self: MADE)
    told = every("--once")
    assert (told.exit_code, "Savepoint p-1 holds batch 7; deleted: p-0" in told.stderr) == (0, True)
    assert "p-x could not be deleted" in told.stderr
    assert json.loads(every("--once", "--json").stdout)["made"]["batch"] == 7
    monkeypatch.setattr(Schedule, "run_once", lambda self: Round(None, ()))
    assert "Nothing was committed since the newest savepoint" in every("--once").stderr


@pytest.mark.parametrize(
    "failure",
    [
        Unavailable("ZooKeeper is away"),
        NotFound("there is no checkpoint"),
        InvalidInput("bk://zk:2181/q has no committed batch yet"),
        CutFailed("files are missing"),
        Damaged("commits/3 is damaged"),
    ],
)
def test_a_failure_is_told_and_tried_again(failure: StateStoreError, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [failure, MADE]
    waits: list[float] = []

    def answer(_: Schedule) -> Round:
        one = answers.pop(0)
        if isinstance(one, Exception):
            raise one
        return MADE

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if not answers:
            raise KeyboardInterrupt

    monkeypatch.setattr(Schedule, "run_once", answer)
    monkeypatch.setattr(SavepointStore, "of", lambda *_: None)
    monkeypatch.setattr("statestore.cli.savepoint.time", SimpleNamespace(sleep=sleep))
    told = every("--minutes", "2")
    assert told.exit_code == 0, "stopped by the user"
    assert waits == [120, 120]
    assert f"No savepoint was made: {failure}" in told.stderr
    assert "Savepoint p-1 holds batch 7" in told.stderr


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("--minutes", "0", "above 0"), ("--minutes", "inf", "up to 525,600, a year"), ("--keep", "0", "1 or more")],
)
def test_wrong_options_are_refused(option: str, value: str, says: str) -> None:
    told = every(option, value)
    assert says in str(told.exception)


@pytest.mark.parametrize(
    ("checkpoint", "option", "says"),
    [
        ("file:///q", "fs.bk.root=/x", "is not a bk:// address"),
        ("bk://zk:2181/q", "fs.bk.rot=/x", "Did you mean"),
        ("bk://name/q", "fs.bk.root=/x", "is not set"),
    ],
)
def test_what_no_later_round_can_mend_is_refused_before_the_first(
    checkpoint: str, option: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Schedule, "run_once", lambda _: pytest.fail("a round has begun"))
    told = CliRunner().invoke(typer_app, ["savepoint", "every", checkpoint, "-o", option])
    assert isinstance(told.exception, InvalidInput)
    assert says in str(told.exception)
