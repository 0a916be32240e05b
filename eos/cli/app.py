"""The command `eos`. Each package brings its commands; this file only puts them together."""

from __future__ import annotations

import typer

from eos.cli import console
from eos.cli.adopt import adopt
from eos.cli.doctor import doctor
from eos.cli.lag import lag
from eos.cli.local import app as local
from eos.cli.peek import peek
from eos.cli.plan import plan
from eos.cli.sinks import app as sink
from eos.cli.topics import app as topics

typer_app = typer.Typer(
    name="eos",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exactly-once output from Spark to Pulsar.",
)
typer_app.add_typer(topics, name="topics")
typer_app.command()(peek)
typer_app.command()(plan)
typer_app.command()(lag)
sink.command()(adopt)
typer_app.add_typer(sink, name="sink")
typer_app.command()(doctor)
typer_app.add_typer(local, name="local")


@typer_app.callback()
def _root(version: console.Version = False) -> None:
    """Exactly-once output from Spark to Pulsar."""


def app() -> None:
    """Run the command line. Exit codes: docs/reference/commands.md."""
    console.run(typer_app)


if __name__ == "__main__":
    app()
