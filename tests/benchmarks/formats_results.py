"""From raw figures to `formats.json`: rows a second and CPU of each format, over raw and over the official client.

And the same as a table, for a terminal and for the page.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from tests.benchmarks.results import Json, spread
from tests.benchmarks.rounds import Timed
from tests.benchmarks.state_table import Sheet, print_sheet

RAW, JSON, AVRO, PROTOBUF = "raw", "json", "avro", "protobuf"
CLIENT_AVRO, CLIENT_PROTOBUF = "client_avro", "client_protobuf"

AIMS: Mapping[str, float] = {JSON: 0.5}
"""Rows a second by those of raw values: at least this."""

CLIENT_AIMS: Mapping[str, float] = {AVRO: 5.0, PROTOBUF: 5.0}
"""Rows a second by those of the official client with the same records: at least this."""

_CLIENT = {AVRO: CLIENT_AVRO, PROTOBUF: CLIENT_PROTOBUF}


def formats(timed: Mapping[str, Timed]) -> Json:
    """Every round, and the ratios of the medians with those of the single rounds."""
    pairs = {
        "ratios": {name: (timed[name], timed[RAW]) for name in (JSON, AVRO, PROTOBUF)},
        "client_ratios": {name: (timed[name], timed[theirs]) for name, theirs in _CLIENT.items()},
    }
    found: Json = {
        "rounds": {
            name: {
                "rows": one.amount,
                "seconds": [round(seconds, 3) for seconds in one.seconds],
                "cpu_seconds": [round(seconds, 3) for seconds in one.cpu_seconds],
            }
            for name, one in timed.items()
        },
        "rows_per_s": {name: spread(one.rates, digits=0) for name, one in timed.items()},
        "cpu_us_per_row": {
            name: spread([1e6 * seconds / one.amount for seconds in one.cpu_seconds]) for name, one in timed.items()
        },
    }
    for kind, compared in pairs.items():
        found[kind] = {name: round(one.rate / other.rate, 3) for name, (one, other) in compared.items()}
        found[f"{kind}_of_rounds"] = {
            name: spread([ours / theirs for ours, theirs in zip(one.rates, other.rates, strict=True)])
            for name, (one, other) in compared.items()
        }
    return found


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
