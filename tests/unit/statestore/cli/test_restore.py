"""What `statestore restore` and the drills refuse before they start anything, and the line that does a drill again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from statestore.cli import rehearsal as cli_rehearsal
from statestore.cli.app import typer_app
from statestore.cli.restore import settings_of, sink_output
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
        ([*IN_STEP, "--job", "os:getcwd", "--sink", "s", "--service-url", "pulsar://h:1"], "os:getcwd is no job"),
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


def test_settings_of_spark_are_pairs() -> None:
    assert settings_of(None) == {}
    assert settings_of(["a=b", "spark.x=1=2"]) == {"a": "b", "spark.x": "1=2"}
    with pytest.raises(InvalidInput, match="--conf takes NAME=VALUE"):
        settings_of(["spark.x"])


def test_the_output_is_where_the_sink_writes(tmp_path: Path) -> None:
    output = sink_output("s", "pulsar+ssl://h:6651/", "a/b", tmp_path / "token", tmp_path / "ca.pem")
    assert output.topic == "persistent://a/b/__eos-s"
    assert output.cluster.service_url == "pulsar+ssl://h:6651"
    assert output.cluster.credentials.data == f"file:{tmp_path / 'token'}"
    assert output.cluster.tls.trust_certs == str(tmp_path / "ca.pem")


def test_the_line_that_does_a_drill_again_has_what_was_given() -> None:
    app = typer.Typer()
    seen: list[str] = []

    @app.callback()
    def _root() -> None: ...

    @app.command()
    def shadow(
        context: typer.Context,
        checkpoint: str,
        batches: int = 3,
        conf: Annotated[list[str] | None, typer.Option("--conf")] = None,
        option: Annotated[list[str] | None, typer.Option("--option", "-o")] = None,
    ) -> None:
        seen.append(cli_rehearsal._rerun(context))

    words = ["shadow", "bk://z:1/q r", "--batches", "5", "--conf", "a=1", "--conf", "b=2"]
    assert CliRunner().invoke(app, words, prog_name="statestore").exit_code == 0
    assert seen == ["statestore shadow 'bk://z:1/q r' --batches 5 --conf a=1 --conf b=2"]
