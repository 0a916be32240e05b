"""The reports that drills leave, also those that fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer import Exit

from statestore.cli.drill import run_and_report
from statestore.drills.acts.acts import Acts, perform
from statestore.errors import InvalidInput, Unavailable


def drill(folder: Path, act: Callable[[Acts], None]) -> None:
    run_and_report(folder, lambda: perform("rehearsal", folder, "statestore drill rehearse bk://z:1/q", act))


def failing(error: Exception) -> Callable[[Acts], None]:
    def act(acts: Acts) -> None:
        acts.check("the state is the same", True)
        raise error

    return act


def summary(folder: Path) -> dict[str, object]:
    assert (folder / "report.html").exists()
    found: dict[str, object] = json.loads((folder / "report.json").read_text())["summary"]
    return found


@pytest.mark.parametrize(
    ("error", "comes"),
    [(ValueError("a fault of ours"), ValueError), (InvalidInput("no"), InvalidInput), (Unavailable("no bookie"), Exit)],
)
def test_a_drill_that_fails_has_a_report_too(error: Exception, comes: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(comes):
        drill(tmp_path, failing(error))
    assert summary(tmp_path)["verdict"] == "UNKNOWN"
    assert str(error) in str(summary(tmp_path)["reasons"])


def test_the_report_of_another_drill_stays(tmp_path: Path) -> None:
    with pytest.raises(Exit):
        drill(tmp_path, lambda acts: acts.check("it held", True))
    before = summary(tmp_path)
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(InvalidInput, match="is there already"):
        drill(tmp_path, failing(ValueError("never begun")))
    assert (tmp_path / "report.html").read_text() == "mine"
    assert summary(tmp_path) == before


def test_a_drill_that_did_not_begin_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((InvalidInput, OSError)):
        drill(tmp_path / "file", failing(ValueError("never begun")))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
