"""From raw figures to `source.json`: CPU a row, its ratios, and milliseconds of micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from tests.benchmarks import column_reads
from tests.benchmarks.one_row import EMPTY, OURS, RATE
from tests.benchmarks.readers import CLIENT, READY
from tests.benchmarks.results import Json, spread
from tests.benchmarks.rounds import Timed
from tests.benchmarks.segment_reads import BOOKIES, BROKERS, IDLE
from tests.benchmarks.source_plan import Case
from tests.benchmarks.state import merge
from tests.benchmarks.typed_reads import AS_BYTES, FROM_MEMORY, NAME, TYPED

AIMS: Mapping[str, tuple[str, float]] = {
    "pulsar_client": ("≥", 5.0),
    "pulsar_client_small": ("≥", 2.0),
    "java_source": ("≤", 0.9),
    "java_source_small": ("≤", 1.2),
    "ready": ("≥", 0.6),
    "avro_over_bytes": ("≤", 1.3),
    "protobuf_over_bytes": ("≤", 1.5),
    "json_over_bytes": ("≤", 1.5),
    "avro_nested_over_bytes": ("≤", 2.0),
    "json_nested_over_bytes": ("≤", 3.0),
    "key_over_every_column": ("≤", 0.6),
    "count_over_every_column": ("≤", 0.4),
    "bookies": ("≤", 0.9),
    "bookies_small": ("≤", 0.4),
    "broker_cpu": ("≤", 0.1),
    "broker_cpu_small": ("≤", 0.1),
    "broker_cpu_beyond_idle": ("≤", 0.1),
    "broker_cpu_beyond_idle_small": ("≤", 0.1),
}
"""The aim of each ratio."""

SEGMENTS = "segments"
"""The beginning of the names of cases that are read past the brokers."""

ADDED_AIM_MS = 20.0
"""Milliseconds that one row should cost over the empty Python source, at most."""

_OVER_OURS = (CLIENT, READY)  # the other's CPU by ours; for the Java source ours by its


def reads(case: Case, timed: Mapping[str, Timed], suffix: str = "") -> Json:
    """One kind of topic: every round, what a row cost, and the ratios of the medians with those of the rounds.

    `suffix` ends the ratios' names.
    """
    ours = timed[OURS]
    others = {name: other for name, other in timed.items() if name != OURS}
    return {
        **_figures(case.name, timed),
        "ratios": {
            name + suffix: round(_ratio(name, median(ours.cpu_seconds), median(other.cpu_seconds)), 3)
            for name, other in others.items()
        },
        "ratios_of_rounds": {
            name + suffix: spread(
                [_ratio(name, mine, theirs) for mine, theirs in zip(ours.cpu_seconds, other.cpu_seconds, strict=True)]
            )
            for name, other in others.items()
        },
        "wall_ratios": {
            name + suffix: round(_ratio(name, median(ours.seconds), median(other.seconds)), 3)
            for name, other in others.items()
        },
    }


def typed(timed: Mapping[str, Timed]) -> Json:
    """Values by their schema: every round, what a row cost, and that over what the same values cost as bytes.

    `ratios_without_decoding` are what the ratios would be if decoding cost nothing: bytes, and what Spark needs for the
    columns from memory beyond what it needs for bytes from memory.
    """
    cpu = {name: median(one.cpu_seconds) for name, one in timed.items()}
    return {
        **_paired(NAME, timed, {f"{name}_over_bytes": (timed[name], timed[name + AS_BYTES]) for name in TYPED}),
        "ratios_without_decoding": {
            f"{name}_over_bytes": round(
                1 + (cpu[name + FROM_MEMORY] - cpu[name + AS_BYTES + FROM_MEMORY]) / cpu[name + AS_BYTES], 3
            )
            for name in TYPED
        },
    }


def columns(timed: Mapping[str, Timed]) -> Json:
    """Few columns: every round, what a row cost, and that over what a row of all columns cost."""
    every = timed[column_reads.EVERY]
    pairs = {f"{name}_over_every_column": (timed[name], every) for name in column_reads.FEW}
    return _paired(column_reads.NAME, timed, pairs)


def _paired(case: str, timed: Mapping[str, Timed], pairs: Mapping[str, tuple[Timed, Timed]]) -> Json:
    return {
        **_figures(case, timed),
        "ratios": {
            name: round(median(one.cpu_seconds) / median(plain.cpu_seconds), 3) for name, (one, plain) in pairs.items()
        },
        "ratios_of_rounds": {
            name: spread([a / b for a, b in zip(one.cpu_seconds, plain.cpu_seconds, strict=True)])
            for name, (one, plain) in pairs.items()
        },
        "wall_ratios": {
            name: round(median(one.seconds) / median(plain.seconds), 3) for name, (one, plain) in pairs.items()
        },
    }


def segments(timed: Mapping[str, Mapping[str, Timed]]) -> Json:
    """History from bookies over that through brokers: the CPU of all processes, and of the brokers alone.

    Brokers use CPU for as long as they run. What they use beyond that for a read is compared too.
    """
    made: Json = {"ratios": {}, "ratios_of_rounds": {}, "wall_ratios": {}}
    suffixes = dict(zip(timed, ("", "_small"), strict=True))
    for case, ways in timed.items():
        past, through = ways[BOOKIES], ways[BROKERS]
        pairs = {
            "bookies": (_of_all(past), _of_all(through)),
            "broker_cpu": (past.broker_cpu_seconds, through.broker_cpu_seconds),
            "broker_cpu_beyond_idle": (_beyond_idle(past, ways[IDLE]), _beyond_idle(through, ways[IDLE])),
        }
        for name, (mine, theirs) in pairs.items():
            key = name + suffixes[case]
            made["ratios"][key] = round(median(mine) / median(theirs), 3)
            made["ratios_of_rounds"][key] = spread([a / b for a, b in zip(mine, theirs, strict=True)])
            made["wall_ratios"][key] = round(median(past.seconds) / median(through.seconds), 3)
        merge(made, _segment_figures(f"{SEGMENTS}_{case}", ways))
    return made


def _of_all(one: Timed) -> list[float]:
    parts = (one.cpu_seconds, one.broker_cpu_seconds, one.bookie_cpu_seconds)
    return [sum(of_round) for of_round in zip(*parts, strict=True)]


def _beyond_idle(one: Timed, idle: Timed) -> list[float]:
    """Return the brokers' CPU of each round beyond what they use while nobody reads; 0 where it was less than that."""
    a_second = median(idle.broker_cpu_seconds) / median(idle.seconds)
    rounds = zip(one.broker_cpu_seconds, one.seconds, strict=True)
    return [max(0.0, used - a_second * seconds) for used, seconds in rounds]


def _segment_figures(case: str, ways: Mapping[str, Timed]) -> Json:
    found = _figures(case, ways)
    for name, one in ways.items():
        parts = {"brokers": one.broker_cpu_seconds, "bookies": one.bookie_cpu_seconds}
        found["rounds"][case][name] |= {
            f"{part}_cpu_seconds": [round(s, 3) for s in own] for part, own in parts.items()
        }
    found["cpu_us_per_row_by_part"] = {
        case: {
            name: {
                "client": round(1e6 * median(one.cpu_seconds) / one.amount, 3),
                "brokers": round(1e6 * median(one.broker_cpu_seconds) / one.amount, 3),
                "bookies": round(1e6 * median(one.bookie_cpu_seconds) / one.amount, 3),
            }
            for name, one in ways.items()
        }
    }
    return found


def _figures(case: str, timed: Mapping[str, Timed]) -> Json:
    return {
        "rounds": {
            case: {
                name: {
                    "rows": one.amount,
                    "seconds": [round(seconds, 3) for seconds in one.seconds],
                    "cpu_seconds": [round(seconds, 3) for seconds in one.cpu_seconds],
                }
                for name, one in timed.items()
            }
        },
        "cpu_us_per_row": {case: {name: spread(_cost(one)) for name, one in timed.items()}},
        "rows_per_s": {case: {name: spread(one.rates, digits=0) for name, one in timed.items()}},
    }


def one_row(taken: Mapping[str, Sequence[Sequence[float]]]) -> Json:
    """Micro-batches of one row, by source and turn."""
    middles = {name: [median(turn) for turn in turns] for name, turns in taken.items()}

    def added(over: str) -> list[float]:
        return [mine - theirs for mine, theirs in zip(middles[OURS], middles[over], strict=True)]

    return {
        "batch_ms": {
            "added_p50": round(median(added(EMPTY)), 1),
            "added_p50_over_rate": round(median(added(RATE)), 1),
            "added_of_rounds": spread(added(EMPTY), digits=1),
            "added_of_rounds_over_rate": spread(added(RATE), digits=1),
            "p50": {name: spread(middle, digits=1) for name, middle in middles.items()},
            "batches": {name: [list(turn) for turn in turns] for name, turns in taken.items()},
        }
    }


def _cost(one: Timed) -> list[float]:
    return [1e6 * seconds / one.amount for seconds in one.cpu_seconds]


def _ratio(name: str, ours: float, theirs: float) -> float:
    return theirs / ours if name in _OVER_OURS else ours / theirs
