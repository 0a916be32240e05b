"""Draw what `make matrix` found into docs/trials.md: python tools/matrix_page.py build/matrix/matrix.json.

The file holds a list of rows: python, spark, pulsar, part, answer ("worked", "can't" or "failed") and why.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "trials.md"
BEGIN, END = "<!-- drawn: matrix, by tools/matrix_page.py -->", "<!-- end of the matrix -->"
NOT_RUN, CANT = "not run", "can't"

Row = dict[str, Any]
Combination = tuple[str, str, str]


def merged(before: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    """Return the newest row of each part of each combination, in order."""
    newest = {(*combination(row), row["part"]): row for row in (*before, *now)}
    return list(newest.values())


def combination(row: Row) -> Combination:
    """Return Spark, Pulsar and Python of a row."""
    return row["spark"], row["pulsar"], row["python"]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown: a line for each part, a column for each combination."""
    columns = sorted({combination(row) for row in rows}, key=_numbers)
    answers = {(*combination(row), row["part"]): row["answer"] for row in rows}
    heads = [f"Spark {spark}, Pulsar {pulsar}" for spark, pulsar, _ in columns]
    lines = [f"| part | {' | '.join(heads)} |", f"|---|{'---|' * len(columns)}"]
    for part in dict.fromkeys(row["part"] for row in rows):
        cells = [answers.get((*column, part), NOT_RUN) for column in columns]
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def reasons(rows: Sequence[Row]) -> str:
    """Return why something failed or can't be done, a line for each."""
    found = [
        f"- On Spark {row['spark']} and Pulsar {row['pulsar']} the part *{row['part']}* {row['answer']}"
        f"{' run' if row['answer'] == CANT else ''}. {row['why'].rstrip('.')}."
        for row in sorted(rows, key=lambda row: _numbers(combination(row)))
        if row["why"]
    ]
    return "\n".join(found)


def drawn(page: str, rows: Sequence[Row]) -> str:
    """Return the page with the rows in the place of those of the last time."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    why = f"\n\n{reasons(rows)}" if reasons(rows) else ""
    return f"{before}{BEGIN}\n{table(rows)}{why}\n{END}{after}"


def _numbers(found: Combination) -> list[list[str]]:
    return [[part.zfill(4) for part in version.split(".")] for version in found]


def main(arguments: Sequence[str]) -> int:
    """Draw the page again."""
    rows = json.loads(Path(arguments[0]).read_text())
    PAGE.write_text(drawn(PAGE.read_text(), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
