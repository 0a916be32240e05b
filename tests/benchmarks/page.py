"""Puts the figures of a run into docs/benchmarks.md: `python -m tests.benchmarks.page [build/bench/sink.json]`.

The page's tables are made from the JSON and never typed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.benchmarks.results import AIMS, Json
from tests.benchmarks.rows import RANDOM
from tests.benchmarks.table import LABELS, other_figures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"


def page_with(text: str, found: Json) -> str:
    """Return the page's text with the figures of a run between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{figures(found)}\n{END}{after}"


def figures(found: Json) -> str:
    """Return the tables in Markdown."""
    about = found["machine"]
    versions = {"Pulsar": "pulsar", "PySpark": "pyspark", "pulsar-client": "pulsar-client", "Java": "java"}
    with_what = ", ".join(f"{name} {about[key]}" for name, key in versions.items())
    parts = [
        f"{about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB. {with_what}, Python {about['python']}. "
        f"Load before the run: {about['load_before']}.\n"
    ]
    for title, part in (("Values of 100 bytes", found), ("Values of 50 to 300 bytes", found[RANDOM.name])):
        first = next(iter(part["rounds"].values()))
        parts.append(f"{title}: {first['rows']:,} rows, medians of {len(first['seconds'])} rounds.\n")
        parts.append(_table(("", "rows/s", "lowest to highest", "sink : this", "aim"), _throughput(part)))
    lines = ((label, f"{value:g}", "" if aim is None else f"≤ {aim:g}") for label, value, aim in other_figures(found))
    parts.append(_table(("", "measured", "aim"), lines))
    return "\n".join(parts)


def _throughput(part: Json) -> Iterable[tuple[str, ...]]:
    for name, label in LABELS.items():
        rate, ratio = part["rows_per_s"][name], part["ratios"].get(name)
        yield (
            label,
            f"{rate['median']:,.0f}",
            f"{rate['min']:,.0f} to {rate['max']:,.0f}",
            "" if ratio is None else f"{ratio:g}",
            "" if ratio is None else f"≥ {AIMS[name]:g}",
        )


def _table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    rows = [head, ("---", *["---:"] * (len(head) - 1)), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    source = Path(sys.argv[1] if len(sys.argv) > 1 else "build/bench/sink.json")
    PAGE.write_text(page_with(PAGE.read_text(), json.loads(source.read_text())))
