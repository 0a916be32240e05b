"""From raw figures to `formats.json`: rows a second and CPU of each format, over raw and over the official client."""

from __future__ import annotations

from collections.abc import Mapping

from tests.benchmarks.results import Json, spread
from tests.benchmarks.rounds import Timed

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
