"""How every drill ends on the command line: its report is written, its verdict told, its exit code given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from statestore.cli import console
from statestore.errors import InvalidInput

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


def report(journal: Path, html: Path | None = None, json: Path | None = None) -> None:
    """Write the report, beside its journal if nothing else is said; tell what came out, and exit with its code."""
    from statestore.drills.report.report import write_report

    page = html or journal.with_name("report.html")
    found = write_report(journal, page, json or journal.with_name("report.json"))
    console.tell(found.summary.sentence)
    for reason in found.summary.reasons:
        console.tell(f"- {reason}")
    console.tell(f"The report: {page}")
    raise typer.Exit(_CODES[found.summary.verdict])
