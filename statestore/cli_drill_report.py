"""`statestore drill-report`: the report of a drill from its journal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from statestore import console
from statestore.errors import Unavailable


def drill_report(
    journal: Annotated[Path, typer.Argument(help="The journal of a drill, whether it has ended or not.")],
    html: Annotated[Path | None, typer.Option(help="Where the page goes; beside the journal if not given.")] = None,
    json: Annotated[Path | None, typer.Option(help="Where the JSON goes; beside the journal if not given.")] = None,
) -> None:
    """Make a drill's report, an HTML page and its JSON. Exit code 1 if the verdict is not PASS."""
    try:
        from statestore.drills.report import write_report
    except ModuleNotFoundError as missing:
        raise Unavailable(
            f"Reports need the Python package {missing.name}. Install it with the extra: "
            "pip install 'spark-pulsar-eos[drills]'"
        ) from missing
    page = html or journal.with_suffix(".html")
    report = write_report(journal, page, json or journal.with_suffix(".json"))
    print(page)
    console.tell(report.summary.sentence)
    if report.summary.verdict != "PASS":
        sys.exit(console.FINDINGS)
