"""The source's results as tables, for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from tests.benchmarks import column_reads
from tests.benchmarks.one_row import EMPTY, OURS, RATE
from tests.benchmarks.readers import CLIENT, JAVA, READY
from tests.benchmarks.results import Json
from tests.benchmarks.segment_reads import BOOKIES, BROKERS
from tests.benchmarks.source_plan import LARGE, SMALL
from tests.benchmarks.source_results import ADDED_AIM_MS, AIMS, SEGMENTS
from tests.benchmarks.state_table import Sheet, print_sheet
from tests.benchmarks.typed_reads import AS_BYTES, NAME, TYPED

LABELS = {
    OURS: "this source",
    CLIENT: "a Python source over pulsar-client",
    JAVA: "a Java source over the Java client",
    READY: "a Python source with ready batches",
    EMPTY: "an empty Python source",
    RATE: "Spark's rate source",
    BROKERS: "through the brokers",
    BOOKIES: "from the bookies",
    column_reads.EVERY: "select *",
    "key": "select __key",
    "count": "what count(*) reads",
}
_SEGMENT_RATIOS = {
    "bookies": "CPU of all processes",
    "broker_cpu": "CPU of the brokers",
    "broker_cpu_beyond_idle": "the same beyond idle brokers'",
}
_COMPARED = {CLIENT: "its CPU : ours", JAVA: "our CPU : its", READY: "its CPU : ours"}


def sheets(found: Json) -> Iterator[Sheet]:
    """Return the tables of what was measured."""
    for case, suffix in ((LARGE, ""), (SMALL, "_small")):
        if case.name in found["rounds"]:
            yield _reads(found, case.name, suffix, f"Entries of {case.messages:,} messages")
    if NAME in found["rounds"]:
        yield _typed(found)
    if column_reads.NAME in found["rounds"]:
        yield _columns(found)
    for case, suffix in ((LARGE, ""), (SMALL, "_small")):
        if f"{SEGMENTS}_{case.name}" in found["rounds"]:
            yield _segments(found, f"{SEGMENTS}_{case.name}", suffix, f"History in entries of {case.messages:,}")
    if "batch_ms" in found:
        yield _one_row(found["batch_ms"])


def show(console: Console, found: Json) -> None:
    """Print the tables."""
    for sheet in sheets(found):
        print_sheet(console, sheet)


def _reads(found: Json, case: str, suffix: str, title: str) -> Sheet:
    rounds = found["rounds"][case]
    one = next(iter(rounds.values()))
    lines: list[tuple[str, ...]] = []
    for name in rounds:
        cost, rate = found["cpu_us_per_row"][case][name], found["rows_per_s"][case][name]
        compared = ("", "", "")
        if name != OURS:
            sign, aim = AIMS.get(name + suffix, ("", 0.0))
            ratio = found["ratios"][name + suffix]
            compared = (f"{ratio:g}", f"{sign} {aim:g}" if sign else "", _COMPARED[name])
        lines.append(
            (
                LABELS[name],
                f"{cost['median']:.2f}",
                f"{cost['min']:.2f} to {cost['max']:.2f}",
                f"{rate['median']:,.0f}",
                *compared,
            )
        )
    head = ("", "CPU µs a row", "lowest to highest", "rows/s", "ratio", "aim", "of")
    return Sheet(f"{title}: {one['rows']:,} rows, medians of {len(one['seconds'])} rounds", head, lines)


def _typed(found: Json) -> Sheet:
    cost, rounds = found["cpu_us_per_row"][NAME], found["rounds"][NAME]
    lines: list[tuple[str, ...]] = []
    for name in TYPED:
        one, ratio = cost[name], f"{name}_over_bytes"
        sign, aim = AIMS[ratio]
        lines.append(
            (
                name.replace("_", ", "),
                f"{one['median']:.2f}",
                f"{one['min']:.2f} to {one['max']:.2f}",
                f"{cost[name + AS_BYTES]['median']:.2f}",
                f"{found['ratios'][ratio]:g}",
                f"{sign} {aim:g}",
                f"{found['ratios_without_decoding'][ratio]:g}",
            )
        )
    head = ("", "CPU µs a row", "lowest to highest", "as bytes", "ratio", "aim", "were decoding free")
    first = rounds[next(iter(TYPED))]
    return Sheet(
        f"Values by their schema: {first['rows']:,} rows, medians of {len(first['seconds'])} rounds", head, lines
    )


def _columns(found: Json) -> Sheet:
    rounds = found["rounds"][column_reads.NAME]
    lines: list[tuple[str, ...]] = []
    for name, cost in found["cpu_us_per_row"][column_reads.NAME].items():
        compared = ("", "")
        if name != column_reads.EVERY:
            ratio = f"{name}_over_every_column"
            sign, aim = AIMS[ratio]
            compared = (f"{found['ratios'][ratio]:g}", f"{sign} {aim:g}")
        spread = f"{cost['min']:.2f} to {cost['max']:.2f}"
        lines.append((LABELS[name], f"{cost['median']:.2f}", spread, *compared))
    head = ("", "CPU µs a row", "lowest to highest", "ratio", "aim")
    first = rounds[column_reads.EVERY]
    return Sheet(f"Columns: {first['rows']:,} rows, medians of {len(first['seconds'])} rounds", head, lines)


def _segments(found: Json, case: str, suffix: str, title: str) -> Sheet:
    rounds = found["rounds"][case]
    lines: list[tuple[str, ...]] = []
    for name in (BROKERS, BOOKIES):
        one = found["cpu_us_per_row_by_part"][case][name]
        cost = (f"{one[part]:.2f}" for part in ("client", "brokers", "bookies"))
        lines.append((LABELS[name], *cost, f"{found['rows_per_s'][case][name]['median']:,.0f}", "", ""))
    for ratio, label in _SEGMENT_RATIOS.items():
        sign, aim = AIMS[ratio + suffix]
        lines.append(
            (f"{label}, bookies : brokers", "", "", "", "", f"{found['ratios'][ratio + suffix]:g}", f"{sign} {aim:g}")
        )
    first = next(iter(rounds.values()))
    head = ("CPU µs a row", "client", "brokers", "bookies", "rows/s", "ratio", "aim")
    return Sheet(f"{title}: {first['rows']:,} rows, medians of {len(first['seconds'])} rounds", head, lines)


def _one_row(batch: Json) -> Sheet:
    lines: list[tuple[str, ...]] = []
    for name, middle in batch["p50"].items():
        added, aim = "", ""
        if name == EMPTY:
            added, aim = f"{batch['added_p50']:g}", f"≤ {ADDED_AIM_MS:g}"
        elif name == RATE:
            added = f"{batch['added_p50_over_rate']:g}"
        lines.append((LABELS[name], f"{middle['median']:g}", f"{middle['min']:g} to {middle['max']:g}", added, aim))
    head = ("", "ms p50", "of rounds", "ours takes longer by", "aim")
    return Sheet("A micro-batch of one row", head, lines)
