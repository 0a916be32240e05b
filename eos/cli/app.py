"""The command `eos`. Each room brings its commands; this file only puts them together."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from eos.cli.doctor import abort, doctor
from eos.cli.local import app as local
from eos.errors import EosError

typer_app = typer.Typer(
    name="eos",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exactly-once output from Spark to Pulsar.",
)
typer_app.add_typer(local, name="local")
typer_app.command()(doctor)
typer_app.command()(abort)


@typer_app.callback()
def _root() -> None:
    """Exactly-once output from Spark to Pulsar."""


def app() -> None:
    """Run the command line; an error that eos raises on purpose is printed as one sentence, exit code 1."""
    try:
        typer_app()
    except EosError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {error}", markup=False, style="red")
        sys.exit(1)


if __name__ == "__main__":
    app()
