"""Shared parts of all verbs of `eos`: lines for people, exit codes, and how an error is shown."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from eos.errors import EosError, InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

# 0: done, nothing to report. FINDINGS: what was looked at is not as it should be. NO_ANSWER: nothing was found out or
# done, because of what was asked or because a server did not answer. UNKNOWN: it was looked at, and can't be known.
# `statestore` has the same: there UNKNOWN is also a drill that ended before it had a verdict.
FINDINGS = 1
NO_ANSWER = 2
UNKNOWN = 3

_WHOLE_LINES = 100_000  # characters
LINES = "\n\t"
"""The control characters that a line for people, or a cell, may hold."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def printable(text: str, but: str = "") -> str:
    """Write control characters as \\x1b, \\n and the like: a terminal would obey them. Args: but: those that stay."""
    return _CONTROL.sub(lambda one: one[0] if one[0] in but else one[0].encode("unicode_escape").decode(), text)


def tell(line: str, style: str | None = None) -> None:
    """Print a line for people, to standard error."""
    from rich.console import Console

    out = Console(stderr=True, highlight=False, soft_wrap=True)
    out.print(printable(line, LINES), markup=False, style=style)


def print_line(line: str) -> None:
    """Print a line for people, to standard output."""
    print(printable(line, LINES))


def columns(*heads: str, right: Collection[str] = ()) -> Table:
    """Make a table with these heads. Where the terminal is narrow, a cell takes several lines, and loses nothing.

    Args: right: the heads of the columns that are aligned to the right.
    """
    from rich.table import Table

    made = Table()
    for head in heads:
        made.add_column(head, overflow="fold", justify="right" if head in right else "left")
    return made


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()) -> None:
    """Print a table to standard output: as wide as the terminal, or with whole lines where there is none.

    Args: right: the heads of the columns that are aligned to the right.
    """
    table = columns(*heads, right=right)
    for row in rows:
        table.add_row(*(printable(str(cell), LINES) for cell in row))
    _show_whole(table)


def print_json(value: object) -> None:
    """Print a value to standard output as JSON, each dataclass in it as an object."""
    print(json.dumps(value, indent=2, default=asdict))


def print_facts(facts: Mapping[str, object]) -> None:
    """Print what is known of one thing to standard output, a line for each name and what it is."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), printable(str(value)))
    _show_whole(table)


def _show_whole(table: Table) -> None:
    from rich.console import Console

    Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WHOLE_LINES).print(table)


def show_progress(topic: str, entries: int) -> None:
    """Show on a terminal, in one line that changes, how many entries of a topic were read."""
    if sys.stderr.isatty():
        print(f"\r{printable(topic)}: {entries:,} entries\x1b[K", end="", file=sys.stderr, flush=True)


def count(number: int, thing: str) -> str:
    """Write a number of things: "no batches", "1 batch", "2,000 batches"."""
    plural = thing + ("es" if thing.endswith("ch") else "s")
    return f"{f'{number:,}' if number else 'no'} {thing if number == 1 else plural}"


def time_of(milliseconds: int | None) -> str:
    """Write milliseconds since 1970 in ISO 8601, in UTC; nothing for None."""
    from eos.doctor.check import in_utc

    return "" if milliseconds is None else in_utc(milliseconds)


def _show_version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        import eos

        print(f"{context.command.name} {eos.__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end.")
]


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


def confirmed(question: str) -> bool:
    """Ask on standard error, and return the answer. Raises typer.Abort where none comes."""
    with redirect_stdout(sys.stderr):  # typer prints a blank before the answer
        return typer.confirm(printable(question, LINES), err=True)


def agreed(question: str) -> bool:
    """Ask the person at the terminal. Raises InvalidInput where nobody answers, as in a job of cron."""
    if sys.stdin is not None:
        try:
            return confirmed(question)
        except typer.Abort:
            if sys.stdin.isatty():  # it was Ctrl-C
                raise
            print(file=sys.stderr)
    raise InvalidInput("Nothing was done. There is no terminal to ask at. --yes says so beforehand")


def ask_first(question: str, yes: bool) -> None:
    """Ask the person at the terminal, unless --yes has said so. A no ends the command. Raises as `agreed`."""
    if not yes and not agreed(question):
        tell("Nothing was done.")
        raise typer.Exit(FINDINGS)


def run(command: Callable[[], None], code_of: Callable[[EosError], int] = lambda error: NO_ANSWER) -> None:
    """Run a command line; an error raised on purpose is one sentence on standard error, and an exit code.

    Args: the command; the exit code of such an error.
    """
    from eos.cli.output import Unprinted, printing

    with printing(NO_ANSWER):
        try:
            command()
        except EosError as error:
            tell(f"error: {error}", "red")
            sys.exit(code_of(error))
        except Unprinted:
            raise
        except Exception:  # a mistake of ours: Python's own exit code for it means a finding
            traceback.print_exc()
            sys.exit(NO_ANSWER)
