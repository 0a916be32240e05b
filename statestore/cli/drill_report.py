"""`statestore drill-report`: the report of a drill, made again from its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from statestore.cli.drill import needed_packages, show


def drill_report(
    journal: Annotated[Path, typer.Argument(help="The journal of a drill, whether it has ended or not.")],
    html: Annotated[Path | None, typer.Option(help="Where the page goes. Default: report.html beside it.")] = None,
    json: Annotated[Path | None, typer.Option(help="Where the JSON goes. Default: report.json beside it.")] = None,
) -> None:
    """Make a drill's report, an HTML page and its JSON, from its journal.

    Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    with needed_packages():
        show(journal, html, json)
