"""The command `eos`. Each package brings its commands; this file only puts them together."""

from __future__ import annotations

import typer

from eos.cli import console
from eos.cli.adopt import adopt
from eos.cli.doctor import abort, doctor
from eos.cli.lag import lag
from eos.cli.local import app as local
from eos.cli.sinks import reset, show, sinks, skip, verify
from eos.cli.tables import peek, plan, tables
from eos.cli.topics import read, topic

typer_app = typer.Typer(
    name="eos",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exactly-once output from Spark to Pulsar.",
)
local.command()(topic)
local.command()(read)
typer_app.add_typer(local, name="local")
typer_app.command()(tables)
typer_app.command()(peek)
typer_app.command()(plan)
typer_app.command()(lag)
typer_app.command()(sinks)
typer_app.command()(show)
typer_app.command()(verify)
typer_app.command()(doctor)
typer_app.command()(abort)
typer_app.command()(skip)
typer_app.command()(reset)
typer_app.command()(adopt)


@typer_app.callback()
def _root(version: console.Version = False) -> None:
    """Exactly-once output from Spark to Pulsar."""


def app() -> None:
    """Run the command line. Exit codes: docs/reference/commands.md."""
    console.run(typer_app)


if __name__ == "__main__":
    app()
