"""`statestore drill | drill-report`: do faults to a job and account for what came out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from statestore.cli import console
from statestore.errors import InvalidInput

KILLS = 150
ROUNDS = 5
SEED = 7

typer_app = typer.Typer(
    name="drill",
    invoke_without_command=True,
    help="Break every part that a job depends on, and account for every row.",
)


@typer_app.callback()
def drill(
    context: typer.Context,
    faults: Annotated[
        str | None,
        typer.Option(help="Families and kinds of faults (docs/chaos-drill.md), separated by commas. Default all."),
    ] = None,
    kills: Annotated[int | None, typer.Option(help=f"How many faults. Default {KILLS}.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same plan.")] = SEED,
    report: Annotated[Path, typer.Option(help="Folder for the journal and the report.")] = Path("drill-report"),
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Run a third job, from topic to topic, under load. Needs a JDK.")
    ] = False,
    from_bookies: Annotated[
        bool,
        typer.Option("--from-bookies", help="With --end-to-end, read closed segments from bookies."),
    ] = False,
    pulsar: Annotated[
        str, typer.Option("--pulsar", metavar="VERSION", help="Pulsar 4.0.0, 4.2.4 or 5.0.0-M1.")
    ] = "4.2.4",
    standalone: Annotated[
        bool,
        typer.Option("--standalone", help="Run the jobs on a Spark master and two workers, with time-outs of 6 s."),
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(help=f"With --standalone, faults of each kind. Default {ROUNDS}.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="No further faults after these minutes. Default no limit.")
    ] = None,
) -> None:
    """Chaos: run two jobs, or three, on a local cluster, do faults to them, and count what is lost, doubled or torn.

    Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    if context.invoked_subcommand is not None:
        _refuse_options_before(context)
        return
    with needed_packages():
        from eos.local import jars
        from statestore.drills.chaos import chaos
        from statestore.drills.chaos.plan import make_plan, make_rounds, parse_faults

    _refuse_mixture(kills, standalone, rounds, end_to_end)
    if from_bookies and not end_to_end:
        raise InvalidInput("--from-bookies is about the job of --end-to-end, which reads a topic. Give both.")
    jars.pulsar(pulsar)  # refuses a version that was not tried
    chosen = parse_faults(faults)
    if standalone:
        plan = make_rounds(ROUNDS if rounds is None else rounds, seed, chosen)
    else:
        plan = make_plan(KILLS if kills is None else kills, seed, chosen, end_to_end)
    if minutes is not None and minutes <= 0:
        raise InvalidInput(f"--minutes is {minutes:g}. A drill needs some time.")
    words = ["statestore", "drill", "--seed", str(seed)]
    words += ["--standalone", "--rounds", str(ROUNDS if rounds is None else rounds)] if standalone else []
    words += [] if standalone else ["--kills", str(len(plan))]
    words += ["--faults", faults] if faults else []
    words += ["--end-to-end"] if end_to_end else []
    words += ["--from-bookies"] if from_bookies else []
    words += ["--pulsar", pulsar] if pulsar != jars.PULSAR_VERSION else []
    words += ["--minutes", f"{minutes:g}"] if minutes is not None else []
    what = chaos.Chaos(
        faults=plan,
        seed=seed,
        folder=report,
        rerun=shlex.join(words),
        minutes=minutes,
        end_to_end=end_to_end,
        standalone=standalone,
        from_bookies=from_bookies,
        pulsar=pulsar,
    )
    with console.bar(total=len(plan), stays=True) as show:

        def tell(line: str, done: int) -> None:
            show(done, len(plan), f"{done}/{len(plan)} {line}")
            if not sys.stderr.isatty():
                console.tell(line)

        run_and_report(report, lambda: chaos.run(what, tell))


def _refuse_options_before(context: typer.Context) -> None:
    """Refuse options that stand before the name of another drill: they are of the chaos drill, and would do nothing."""
    given = [
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if (source := context.get_parameter_source(parameter.name or "")) is not None and source.name == "COMMANDLINE"
    ]
    if given:
        raise InvalidInput(
            f"{', '.join(given)} before {context.invoked_subcommand} belongs to the chaos drill. Give the options of "
            f"{context.invoked_subcommand} after its name"
        )


def _refuse_mixture(kills: int | None, standalone: bool, rounds: int | None, end_to_end: bool) -> None:
    """Refuse options that don't go together, rather than leave one out."""
    if standalone and kills is not None:
        raise InvalidInput("--kills doesn't go with --standalone, which does each kind of fault --rounds times.")
    if standalone and end_to_end:
        raise InvalidInput("--end-to-end doesn't go with --standalone. Run one drill after the other.")
    if rounds is not None and not standalone:
        raise InvalidInput("--rounds belongs to --standalone; without it, --kills says how many faults there are.")


def drill_report(
    journal: Annotated[Path, typer.Argument(help="The journal of a drill, whether it has ended or not.")],
    html: Annotated[Path | None, typer.Option(help="Where the page goes, by default report.html beside it.")] = None,
    json: Annotated[Path | None, typer.Option(help="Where the JSON goes, by default report.json beside it.")] = None,
) -> None:
    """Make a drill's report, an HTML page and its JSON, from its journal.

    Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    if html is not None and json is not None and html.absolute() == json.absolute():
        raise InvalidInput(f"--html and --json are both {html}. Name two files")
    with needed_packages():
        write_report_and_exit(journal, html, json)


_CODES = {"PASS": 0, "FAIL": console.FINDINGS, "UNKNOWN": console.UNKNOWN}
_EXTRA = ("pydantic", "psutil", "pulsar", "jinja2", "pyspark")


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


def run_and_report(folder: Path, run: Callable[[], Path]) -> NoReturn:
    """Do a drill, write its report, and exit with its code. A drill that fails has a report too, of what it had done.

    Args: where its journal goes; does it, and returns the journal.
    """
    from statestore.drills.record import JOURNAL

    path = folder / JOURNAL
    of_another = path.exists()
    try:
        journal = run()
    except Exception:  # whatever it is: it goes on
        if path.exists() and not of_another:
            _write_report(path, None, None)
        raise
    write_report_and_exit(journal)


def write_report_and_exit(journal: Path, html: Path | None = None, json: Path | None = None) -> NoReturn:
    """Write the report, beside its journal if nothing else is said; tell what came out, and exit with its code."""
    raise typer.Exit(_CODES[_write_report(journal, html, json)])


def _write_report(journal: Path, html: Path | None, json: Path | None) -> str:
    """Write the report and tell what came out; return the verdict."""
    from statestore.drills.report.report import write_report

    page = html or journal.with_name("report.html")
    found = write_report(journal, page, json or journal.with_name("report.json"))
    console.tell(found.summary.sentence)
    for reason in found.summary.reasons:
        console.tell(f"- {reason}")
    console.tell(f"The report: {page}")
    return found.summary.verdict
