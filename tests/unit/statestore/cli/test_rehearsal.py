"""The line that does a drill again."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.testing import CliRunner

from statestore.cli import rehearsal as cli_rehearsal


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
        token: str | None = None,
        basic: str | None = None,
        oauth2: str | None = None,
        tls_verify_hostname: bool | None = None,
    ) -> None:
        seen.append(cli_rehearsal._rerun(context))

    words = ["shadow", "bk://z:1/q r", "--batches", "5", "--conf", "a=1", "--conf", "b=2"]
    assert CliRunner().invoke(app, words, prog_name="statestore").exit_code == 0
    line = "statestore shadow 'bk://z:1/q r' --batches 5 --conf a=1 --conf b=2"
    assert seen == [line]
    secrets = ["--token", "s3cret", "--basic", "u:s3cret", "--oauth2", '{"client_secret": "s3cret"}']
    more = ["--no-tls-verify-hostname"]
    assert CliRunner().invoke(app, [*words, *secrets, *more], prog_name="statestore").exit_code == 0
    assert CliRunner().invoke(app, [*words, "--token", "file:/t"], prog_name="statestore").exit_code == 0
    assert seen[1:] == [f"{line} --no-tls-verify-hostname", f"{line} --token file:/t"]
