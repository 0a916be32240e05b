"""Puts the figures of a run into docs/benchmarks.md: `python -m tests.benchmarks.page [build/bench/sink.json …]`.

The page's tables are made from the JSON and never typed. A file's name tells its content, `sink.json`, `source.json`,
`state.json` or `formats.json`. Without arguments all are looked for in build/bench.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.benchmarks import formats_results, source_table
from tests.benchmarks.results import Json
from tests.benchmarks.rows import RANDOM
from tests.benchmarks.state_table import sheets
from tests.benchmarks.table import lines_of, other_figures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
FOUND = Path("build/bench")


def page_with(text: str, about: str, found: Json) -> str:
    """Return the page's text with the figures of a run between the markers of what it is about."""
    begin, end = f"<!-- {about} figures: begin -->\n", f"<!-- {about} figures: end -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{FIGURES[about](found)}\n{end}{after}"


def sink_figures(found: Json) -> str:
    """Return the tables of `make bench-sink` in Markdown."""
    versions = {"Pulsar": "pulsar", "PySpark": "pyspark", "pulsar-client": "pulsar-client", "Java": "java"}
    parts = [_machine(found, versions)]
    for title, part in (("Values of 100 bytes", found), ("Values of 50 to 300 bytes", found[RANDOM.name])):
        first = next(iter(part["rounds"].values()))
        parts.append(f"{title}: {first['rows']:,} rows, medians of {len(first['seconds'])} rounds.\n")
        parts.append(_table(("", "rows/s", "lowest to highest", "sink : this", "aim"), _throughput(part)))
    lines = ((label, f"{value:g}", "" if aim is None else f"≤ {aim:g}") for label, value, aim in other_figures(found))
    parts.append(_table(("", "measured", "aim"), lines))
    return "\n".join(parts)


def state_figures(found: Json) -> str:
    """Return the tables of `make bench-state` in Markdown."""
    parts = [_machine(found, {"Pulsar": "pulsar", "PySpark": "pyspark", "Hadoop": "hadoop", "Java": "java"})]
    for sheet in sheets(found):
        parts += [f"{sheet.title}:\n", _table(sheet.head, sheet.lines)]
    return "\n".join(parts)


def source_figures(found: Json) -> str:
    """Return the tables of `make bench-source` in Markdown."""
    versions = {"Pulsar": "pulsar", "PySpark": "pyspark", "pulsar-client": "pulsar-client", "Java": "java"}
    parts = [_machine(found, versions)]
    for sheet in source_table.sheets(found):
        parts += [f"{sheet.title}:\n", _table(sheet.head, sheet.lines)]
    return "\n".join(parts)


def formats_figures(found: Json) -> str:
    """Return the table of `make bench-formats` in Markdown."""
    told = formats_results.sheet(found)
    versions = {"Pulsar": "pulsar", "PySpark": "pyspark", "pulsar-client": "pulsar-client"}
    return "\n".join([_machine(found, versions), f"{told.title}:\n", _table(told.head, told.lines)])


FIGURES = {"sink": sink_figures, "source": source_figures, "state": state_figures, "formats": formats_figures}


def _machine(found: Json, versions: Mapping[str, str]) -> str:
    about = found["machine"]
    with_what = ", ".join(f"{name} {about[key]}" for name, key in versions.items())
    return (
        f"{about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB. {with_what}, Python {about['python']}. "
        f"Load before the run: {about['load_before']}.\n"
    )


def _throughput(part: Json) -> Iterable[tuple[str, ...]]:
    for _, ratio, *cells, aim in lines_of(part):
        yield (*cells, ratio, aim)


def _table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    rows = [head, ("---", *["---:"] * (len(head) - 1)), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    named = [Path(name) for name in sys.argv[1:]]
    for source in named or [path for about in FIGURES if (path := FOUND / f"{about}.json").exists()]:
        PAGE.write_text(page_with(PAGE.read_text(), source.stem, json.loads(source.read_text())))
