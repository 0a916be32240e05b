"""The command `statestore`."""

from __future__ import annotations

from collections.abc import Callable

import typer

from statestore import (
    cli_checkpoint,
    cli_drill,
    cli_drill_report,
    cli_files,
    cli_ledgers,
    cli_rehearsal,
    cli_restore,
    cli_savepoint,
    cli_transfer,
    console,
)
from statestore.jar import jar_path

typer_app = typer.Typer(
    name="statestore",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Spark's checkpoints and streaming state on BookKeeper.",
)
_COMMANDS: tuple[Callable[..., None], ...] = (
    *cli_files.COMMANDS,
    cli_transfer.cp,
    *cli_checkpoint.COMMANDS,
    *cli_ledgers.COMMANDS,
    cli_restore.restore,
    cli_drill_report.drill_report,
)
for _command in _COMMANDS:
    typer_app.command()(_command)
cli_savepoint.typer_app.command()(cli_restore.restore)
typer_app.add_typer(cli_savepoint.typer_app)
for _name, _drill in cli_rehearsal.COMMANDS.items():
    cli_drill.typer_app.command(_name)(_drill)
typer_app.add_typer(cli_drill.typer_app)


@typer_app.callback()
def _root() -> None:
    """Spark's checkpoints and streaming state on BookKeeper."""


@typer_app.command()
def jar() -> None:
    """Print where the jar of bk:// is, for spark-submit --jars."""
    print(jar_path())


def app() -> None:
    """Run the command line. Exit codes: 0, 1 findings, 2 bad input or no answer."""
    console.run(typer_app)


if __name__ == "__main__":
    app()
