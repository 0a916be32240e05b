"""`statestore drill | drill-report`: do faults to a job and account for what came out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from statestore.cli import console, verdict
from statestore.errors import InvalidInput

KILLS = 150
SEED = 7

typer_app = typer.Typer(
    name="drill",
    invoke_without_command=True,
    help="Break everything a job stands on, and account for what came out.",
)


@typer_app.callback()
def drill(
    context: typer.Context,
    faults: Annotated[
        str | None,
        typer.Option(help="Families and kinds of faults, separated by commas. Default: all; see docs/drills.md."),
    ] = None,
    kills: Annotated[int, typer.Option(help="How many faults.")] = KILLS,
    seed: Annotated[int, typer.Option(help="What the plan is drawn from; the same seed gives the same plan.")] = SEED,
    report: Annotated[Path, typer.Option(help="Folder for the journal and the report.")] = Path("drill-report"),
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Run a third job, from topic to topic, under load. Needs a JDK.")
    ] = False,
    minutes: Annotated[float | None, typer.Option(help="No more faults after these. Default: no limit.")] = None,
) -> None:
    """Chaos: run two jobs, or three, on a local cluster, do faults to them, and count what is lost, doubled or torn.

    Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    if context.invoked_subcommand is not None:
        return
    with verdict.needed_packages():
        from statestore.drills.chaos import chaos
        from statestore.drills.chaos.plan import make_plan, parse_faults

    plan = make_plan(kills, seed, parse_faults(faults), end_to_end)
    if minutes is not None and minutes <= 0:
        raise InvalidInput(f"--minutes is {minutes:g}; a drill needs some time.")
    words = ["statestore", "drill", "--kills", str(kills), "--seed", str(seed)]
    words += ["--faults", faults] if faults else []
    words += ["--end-to-end"] if end_to_end else []
    words += ["--minutes", f"{minutes:g}"] if minutes is not None else []
    what = chaos.Chaos(plan, seed, report, shlex.join(words), minutes, end_to_end)
    with console.bar(total=len(plan), stays=True) as show:

        def tell(line: str, done: int) -> None:
            show(done, len(plan), f"{done}/{len(plan)} {line}")
            if not sys.stderr.isatty():
                console.tell(line)

        journal = chaos.run(what, tell)
    verdict.report(journal)


def drill_report(
    journal: Annotated[Path, typer.Argument(help="The journal of a drill, whether it has ended or not.")],
    html: Annotated[Path | None, typer.Option(help="Where the page goes. Default: report.html beside it.")] = None,
    json: Annotated[Path | None, typer.Option(help="Where the JSON goes. Default: report.json beside it.")] = None,
) -> None:
    """Make a drill's report, an HTML page and its JSON, from its journal.

    Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    with verdict.needed_packages():
        verdict.report(journal, html, json)
