"""The command `statestore`."""

from __future__ import annotations

from collections.abc import Callable

import typer

from eos.cli.console import Version
from statestore.cli import (
    checkpoint,
    console,
    difference,
    drill,
    files,
    ledgers,
    rehearsal,
    restore,
    savepoint,
    transfer,
)
from statestore.hadoop.jar import jar_path

typer_app = typer.Typer(
    name="statestore",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Spark's checkpoints and streaming state on BookKeeper.",
)
_COMMANDS: tuple[Callable[..., None], ...] = (
    *files.COMMANDS,
    transfer.cp,
    *checkpoint.COMMANDS,
    difference.diff,
    *ledgers.COMMANDS,
    restore.restore,
    transfer.rescale,
    drill.drill_report,
)
for _command in _COMMANDS:
    typer_app.command()(_command)
savepoint.typer_app.command()(restore.restore)
typer_app.add_typer(savepoint.typer_app)
for _name, _drill in rehearsal.COMMANDS.items():
    drill.typer_app.command(_name)(_drill)
typer_app.add_typer(drill.typer_app)


@typer_app.callback()
def _root(version: Version = False) -> None:
    """Spark's checkpoints and streaming state on BookKeeper."""


@typer_app.command()
def jar() -> None:
    """Print where the jar of bk:// is, for spark-submit --jars."""
    print(jar_path())


def app() -> None:
    """Run the command line. Exit codes: docs/reference/commands.md."""
    console.run(typer_app)


if __name__ == "__main__":
    app()
