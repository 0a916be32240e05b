"""The formats' results as a table, for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from tests.benchmarks.formats_results import (
    AIMS,
    AVRO,
    CLIENT_AIMS,
    CLIENT_AVRO,
    CLIENT_PROTOBUF,
    JSON,
    PROTOBUF,
    RAW,
)
from tests.benchmarks.results import Json
from tests.benchmarks.state_table import Sheet, print_sheet

LABELS = {
    RAW: "this sink, the JSON as bytes that are there",
    JSON: "this sink, JSON",
    AVRO: "this sink, AVRO",
    PROTOBUF: "this sink, protobuf",
    CLIENT_AVRO: "foreachPartition + pulsar-client, AVRO",
    CLIENT_PROTOBUF: "foreachPartition + pulsar-client, protobuf",
}


def sheet(found: Json) -> Sheet:
    """Return the table of what was measured."""
    lines: list[tuple[str, ...]] = []
    for name, rate in found["rows_per_s"].items():
        over_raw = _judged(found["ratios"], AIMS, name)
        over_client = _judged(found["client_ratios"], CLIENT_AIMS, name)
        cost = f"{found['cpu_us_per_row'][name]['median']:.2f}"
        span = f"{rate['min']:,.0f} to {rate['max']:,.0f}"
        lines.append((LABELS[name], f"{rate['median']:,.0f}", span, cost, over_raw, over_client))
    one = found["rounds"][RAW]
    head = ("", "rows/s", "lowest to highest", "CPU µs a row", "over raw", "over the client")
    return Sheet(f"{one['rows']:,} records, medians of {len(one['seconds'])} rounds", head, lines)


def show(console: Console, found: Json) -> None:
    """Print the table."""
    print_sheet(console, sheet(found))


def _judged(ratios: Mapping[str, float], aims: Mapping[str, float], name: str) -> str:
    if name not in ratios:
        return ""
    return f"{ratios[name]:g} (≥ {aims[name]:g})" if name in aims else f"{ratios[name]:g}"
