"""What `statestore restore` and the drills refuse before they start anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from statestore.cli.app import typer_app
from statestore.errors import InvalidInput

IN_STEP = ["restore", "name", "bk://z:1/new", "--in-step"]
SHADOW = ["drill", "shadow", "bk://z:1/q"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*IN_STEP], "--job is missing"),
        ([*IN_STEP, "--job", "a:b"], "--sink, the name of the job's sink, must be given"),
        ([*IN_STEP, "--job", "a:b", "--sink", "s"], "--service-url, the cluster it writes to, must be given"),
        ([*IN_STEP, "--job", "no", "--sink", "s", "--service-url", "pulsar://h:1"], "'no' names no job"),
        ([*IN_STEP, "--job", "os:getcwd", "--sink", "s", "--service-url", "pulsar://h:1"], "os:getcwd is not a job"),
        (["restore", "name", "bk://z:1/new", "--name", "x"], "--name is for topics"),
        (["savepoint", *IN_STEP], "--job is missing"),
        ([*SHADOW], "--job is missing"),
        (["drill", "rehearse", "bk://z:1/q", "--sink", "s"], "--service-url, the cluster it writes to, must be given"),
    ],
)
def test_what_is_missing_is_named(words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(typer_app, words)
    assert isinstance(result.exception, InvalidInput)
    assert says in str(result.exception)
    assert list(tmp_path.iterdir()) == [], "no journal was begun"
