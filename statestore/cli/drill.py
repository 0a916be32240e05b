"""`statestore drill`: do faults to a job and account for what came out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from statestore.cli import console
from statestore.errors import InvalidInput

KILLS = 150
SEED = 7
UNKNOWN = 3
"""Exit code: the drill ended, and it is not known whether all is well."""
_CODES = {"PASS": 0, "FAIL": console.FINDINGS, "UNKNOWN": UNKNOWN}
_EXTRA = ("pydantic", "psutil", "pulsar", "jinja2", "pyspark")

typer_app = typer.Typer(
    name="drill",
    invoke_without_command=True,
    help="Break everything a job stands on, and account for what came out.",
)


@typer_app.callback()
def drill(
    context: typer.Context,
    faults: Annotated[
        str | None, typer.Option(help="Families of faults, separated by commas. Default: all; see docs/drills.md.")
    ] = None,
    kills: Annotated[int, typer.Option(help="How many faults.")] = KILLS,
    seed: Annotated[int, typer.Option(help="What the plan is drawn from; the same seed gives the same plan.")] = SEED,
    report: Annotated[Path, typer.Option(help="Folder for the journal and the report.")] = Path("drill-report"),
    minutes: Annotated[float | None, typer.Option(help="No more faults after these. Default: no limit.")] = None,
) -> None:
    """Chaos: run two jobs on a local cluster, do faults to them, and count what is lost, doubled or torn.

    Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    if context.invoked_subcommand is not None:
        return
    with needed_packages():
        from statestore.drills.chaos import chaos
        from statestore.drills.chaos.plan import make_plan, parse_families

    plan = make_plan(kills, seed, parse_families(faults))
    if minutes is not None and minutes <= 0:
        raise InvalidInput(f"--minutes is {minutes:g}; a drill needs some time.")
    words = ["statestore", "drill", "--kills", str(kills), "--seed", str(seed)]
    words += ["--faults", faults] if faults else []
    words += ["--minutes", f"{minutes:g}"] if minutes is not None else []
    what = chaos.Chaos(plan, seed, report, shlex.join(words), minutes)
    bars = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = Console(stderr=True)
    with Progress(*bars, console=terminal, disable=not terminal.is_terminal) as bar:
        task = bar.add_task("", total=len(plan))

        def tell(line: str, done: int) -> None:
            bar.update(task, description=line, completed=done)
            if not terminal.is_terminal:
                console.tell(line)

        journal = chaos.run(what, tell)
    show(journal)


@contextmanager
def needed_packages() -> Iterator[None]:
    """Say what is to be installed when an import fails. Raises InvalidInput."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise InvalidInput(
            f"Drills need {error.name}, which is not installed: pip install 'spark-pulsar-eos[drills]'"
        ) from error


def show(journal: Path, html: Path | None = None, json: Path | None = None) -> None:
    """Write the report, beside its journal if nothing else is said; tell what came out, and exit with its code."""
    from statestore.drills.report.report import write_report

    page = html or journal.with_name("report.html")
    found = write_report(journal, page, json or journal.with_name("report.json"))
    console.tell(found.summary.sentence)
    for reason in found.summary.reasons:
        console.tell(f"- {reason}")
    console.tell(f"The report: {page}")
    raise typer.Exit(_CODES[found.summary.verdict])
