"""`statestore rm`: which checkpoints it asks about, and what it leaves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statestore.cli import files
from statestore.cli.app import typer_app
from statestore.errors import InvalidInput
from statestore.hadoop.file_systems import Hadoop
from tests.unit.statestore.folders import Folders
from tests.unit.test_cli import Terminal


def checkpoint(folder: Path, metadata: str = '{"id":"x"}') -> Path:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text(metadata)
    return folder


@pytest.mark.parametrize("places", [["q"], ["q/flights"], ["q/team/flights"], ["q/a", "q/b/c/d"]])
def test_it_asks_before_it_deletes_a_checkpoint_wherever_it_lies(
    places: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = [checkpoint(tmp_path / place) for place in places]
    monkeypatch.setattr(Hadoop, "of", lambda **_: Folders())
    result = CliRunner().invoke(typer_app, ["rm", "-r", str(tmp_path / "q")])
    assert isinstance(result.exception, InvalidInput)
    assert str(result.exception).startswith(f"{', '.join(map(str, checkpoints))}: a query's checkpoint. ")
    assert all((folder / "metadata").exists() for folder in checkpoints)
    assert CliRunner().invoke(typer_app, ["rm", "-r", "--yes", str(tmp_path / "q")]).exit_code == 0
    assert not (tmp_path / "q").exists()


def test_a_name_in_the_question_does_nothing_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    with pytest.raises(InvalidInput, match="Nothing was deleted"):
        files._ask(["bk://h/\x1b[2J"])
    assert r"bk://h/\x1b[2J: a query's checkpoint" in capsys.readouterr().err


def test_it_does_not_ask_where_standard_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InvalidInput, match="There is no terminal to ask at: --yes"):
        files._ask(["bk://h/q"])


def test_it_does_not_ask_about_a_checkpoint_that_was_only_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(tmp_path / "q" / "team" / "flights", metadata="")
    monkeypatch.setattr(Hadoop, "of", lambda **_: Folders())
    assert CliRunner().invoke(typer_app, ["rm", "-r", str(tmp_path / "q")]).exit_code == 0
    assert not (tmp_path / "q").exists()


@pytest.mark.parametrize(
    ("metadata", "asks"), [("", []), ("{}", ["history/checkpoint"]), (None, ["history/checkpoint"])]
)
def test_the_checkpoint_of_a_killed_bootstrap_is_part_of_what_was_begun(
    metadata: str | None, asks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "new"
    checkpoint(place / "history" / "checkpoint")
    if metadata is not None:
        (place / "metadata").write_text(metadata)
    monkeypatch.setattr(Hadoop, "of", lambda **_: Folders())
    result = CliRunner().invoke(typer_app, ["rm", "-r", str(place)])
    assert place.exists() is bool(asks)
    assert all(f"{place}/{name}: a query's checkpoint" in str(result.exception) for name in asks)


def test_a_place_that_was_begun_hides_no_other_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(tmp_path / "new" / "other" / "history" / "checkpoint")
    (tmp_path / "new" / "metadata").write_text("")
    monkeypatch.setattr(Hadoop, "of", lambda **_: Folders())
    result = CliRunner().invoke(typer_app, ["rm", "-r", str(tmp_path / "new")])
    assert "other/history/checkpoint: a query's checkpoint" in str(result.exception)
    assert (tmp_path / "new").exists()


@pytest.mark.parametrize("link", ["old/link", "old/team/link", "link"])
def test_it_deletes_a_symbolic_link_and_never_the_checkpoint_behind_it(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = checkpoint(tmp_path / "live" / "flights")
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(live)
    top = tmp_path / Path(link).parts[0]
    monkeypatch.setattr(Hadoop, "of", lambda **_: Folders())
    assert CliRunner().invoke(typer_app, ["rm", "-r", str(top)]).exit_code == 0
    assert not top.exists()
    assert not top.is_symlink()
    assert (live / "metadata").exists()
    assert (live / "offsets").exists()


def test_a_link_to_a_folder_above_it_does_not_lead_round_and_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(tmp_path / "old" / "flights")
    (tmp_path / "old" / "again").symlink_to(tmp_path / "old")
    monkeypatch.setattr(Hadoop, "of", lambda **_: Folders())
    result = CliRunner().invoke(typer_app, ["rm", "-r", str(tmp_path / "old")])
    assert str(result.exception).startswith(f"{tmp_path}/old/flights: a query's checkpoint. "), "it is named once"
    assert CliRunner().invoke(typer_app, ["rm", "-r", "--yes", str(tmp_path / "old")]).exit_code == 0
    assert not (tmp_path / "old").exists()
