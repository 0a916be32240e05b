"""The picture of a drill's report is taken by Chromium, and the tool says what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import take_screenshot


def chromium(folder: Path, writes: str) -> None:
    """Put a Chromium on the PATH that writes this file."""
    program = folder / "chromium"
    program.write_text(
        f'#!/bin/sh\nfor word; do case $word in --screenshot=*) {writes} ;; esac; done\necho "no screen" >&2\n'
    )
    program.chmod(0o755)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A report, and where its picture goes. The folder of both is first on the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    report, picture = tmp_path / "report.html", tmp_path / "report.png"
    report.write_text("<p>PASS</p>")
    return report, picture


def test_a_picture_is_written(places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    report, picture = places
    chromium(report.parent, 'printf png > "${word#*=}"')
    assert take_screenshot.main([str(report), str(picture)]) == 0
    assert picture.read_text() == "png"
    assert "3 bytes" in capsys.readouterr().out


def test_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report, picture = tmp_path / "report.html", tmp_path / "report.png"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert take_screenshot.main([str(report), str(picture)]) == 2
    assert "apt-get install chromium" in capsys.readouterr().err
    chromium(tmp_path, "true")
    assert take_screenshot.main([str(report), str(picture)]) == 2
    assert "make drills" in capsys.readouterr().err


def test_an_old_picture_does_not_pass_for_a_new_one(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    report, picture = places
    chromium(report.parent, "true")
    picture.write_text("old")
    assert take_screenshot.main([str(report), str(picture)]) == 1
    assert "no screen" in capsys.readouterr().err


def test_the_page_is_the_last_word() -> None:
    words = take_screenshot.command("chromium", Path("/tmp/report.html"), Path("/tmp/out.png"))
    assert words[-1] == "file:///tmp/report.html"
    assert "--screenshot=/tmp/out.png" in words
