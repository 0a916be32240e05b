"""How the command line speaks: tables, JSON, lines for people, a progress bar, errors and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from eos.cli.console import FINDINGS as FINDINGS
from eos.cli.console import NO_ANSWER as NO_ANSWER
from eos.cli.console import UNKNOWN as UNKNOWN
from eos.cli.console import confirmed as confirmed
from eos.cli.console import count as count
from eos.cli.console import print_facts as print_facts
from eos.cli.console import print_line as print_line
from eos.cli.console import print_table as print_table
from eos.cli.console import run as run_and_tell
from eos.cli.console import tell as tell
from eos.cli.console import time_of as time_of
from statestore.errors import Damaged

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_AGES = (("d", 86_400), ("h", 3_600), ("min", 60))
Show = Callable[[int, int | None, str], None]
"""Called with how much is done, how much there is (None: not known), and that in words."""


def show_json(value: object) -> None:
    """Print a value as JSON, to standard output."""
    print(json.dumps(value, indent=2, default=str))


def show(fields: object, as_json: bool, line: str) -> None:
    """Print what was done: as JSON, or as a line for people."""
    if as_json:
        show_json(fields)
    else:
        tell(line)


@contextmanager
def bar(what: str = "", total: int | None = None, *, stays: bool = False) -> Iterator[Show]:
    """Show a bar on standard error while the block runs; only on a terminal.

    Args:
        what: a word before the bar.
        total: how much there is. None: not known yet.
        stays: the last state of the bar stays on the terminal.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    out = Console(stderr=True)
    columns = (TextColumn(what, markup=False), BarColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, TimeElapsedColumn(), console=out, transient=not stays, disable=not out.is_terminal) as bars:
        task = bars.add_task("", total=total)
        yield lambda done, total, text: bars.update(task, completed=done, total=total, description=text)


def bytes_of(show: Show) -> Callable[[int, int], None]:
    """Return what a copy calls with bytes done and bytes in all, for a bar."""
    return lambda done, total: show(done, total, f"{size(done)} of {size(total)}")


def runs(numbers: Iterable[int]) -> str:
    """Write numbers in short: 1, 2, 3, 7 is "1-3 7"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def age(now_ms: int, then_ms: int) -> str:
    """Write how long ago, in the largest unit that has at least two; "" for a moment that is not known (0)."""
    if not then_ms:
        return ""
    seconds = max(now_ms - then_ms, 0) // 1000
    for unit, length in _AGES:
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def size(count: int) -> str:
    """Write bytes for people: 1536 is "1.5 KiB"."""
    amount = float(count)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def run(command: Callable[[], Any]) -> None:
    """Run a command line, as `eos` does; damage that was found has the exit code of findings."""
    run_and_tell(command, lambda error: FINDINGS if isinstance(error, Damaged) else NO_ANSWER)
