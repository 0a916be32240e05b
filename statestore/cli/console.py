"""What all verbs of the command line share: their common options, tables or JSON, and how an error is told."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from eos.errors import EosError
from statestore.errors import Damaged, InvalidInput
from statestore.hadoop.options import checked

# 0: done, nothing to report. FINDINGS: what was looked at is not as it should be. BAD_INPUT: nothing was found out or
# done, because of what was asked or because a server did not answer.
FINDINGS = 1
BAD_INPUT = 2

AsJson = Annotated[bool, typer.Option("--json", help="JSON in place of a table.")]
HadoopOptions = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", envvar="STATESTORE_OPTIONS", help="A Hadoop option, fs.bk.NAME=VALUE. Repeatable."),
]
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def parse_options(pairs: Sequence[str] | None) -> dict[str, str]:
    """Read `--option fs.bk.NAME=VALUE`, each name checked.

    Raises:
        InvalidInput: not of this form, an unknown name, or a value of the wrong kind.
    """
    found = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"--option takes NAME=VALUE, such as fs.bk.root=/eos-bk, not {pair!r}")
        found[name.strip()] = value
    return checked(found)


def show_json(value: object) -> None:
    """Print a value as JSON, to standard output."""
    print(json.dumps(value, indent=2, default=str))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """Print rows as a table, to standard output; the columns in `right` are aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    out = Console(highlight=False)
    if out.is_terminal:
        out.print(table)
        return
    # For programs: lines of any length, and no blanks that fill the last column.
    text = io.StringIO()
    Console(file=text, highlight=False, width=10_000).print(table)
    print("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def tell(line: str) -> None:
    """Print a line for people, to standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False)


def size(count: int) -> str:
    """Write bytes for people: 1536 is "1.5 KiB"."""
    amount = float(count)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def moment(ms: int) -> str:
    """Write milliseconds since the epoch as UTC, to the second."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def run(command: Callable[[], Any]) -> None:
    """Run a command line; an error raised on purpose is one line on standard error and an exit code."""
    try:
        command()
    except EosError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {error}", markup=False, style="red")
        sys.exit(FINDINGS if isinstance(error, Damaged) else BAD_INPUT)
