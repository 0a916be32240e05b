"""The figures of `make bench-source` from made-up turns, and the page that shows them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from rich.console import Console

from tests.benchmarks import column_reads, page, source_results
from tests.benchmarks.rounds import Timed, take_turns
from tests.benchmarks.segment_reads import BOOKIES, BROKERS, IDLE
from tests.benchmarks.source_plan import LARGE, SMALL, SourcePlan
from tests.benchmarks.source_table import show
from tests.benchmarks.state import merge
from tests.benchmarks.typed_reads import AS_BYTES, FROM_MEMORY, TYPED

MACHINE = {"cpu": "a CPU", "cores": 2, "memory_gib": 8, "load_before": 0.1, "python": "3.11.1"} | dict.fromkeys(
    ("pulsar", "pyspark", "pulsar-client", "java"), "1.0"
)


CASES = (LARGE, SMALL)


def timed(*cpu_seconds: float) -> Timed:
    return Timed(1_000_000, tuple(2 * seconds for seconds in cpu_seconds), cpu_seconds)


def parts(client: float, brokers: float, bookies: float) -> Timed:
    return replace(timed(client), broker_cpu_seconds=(brokers,), bookie_cpu_seconds=(bookies,))


SEGMENTS = {BROKERS: parts(2, 3, 5), BOOKIES: parts(1, 0.5, 1), IDLE: parts(1, 0.2, 0.1)}
"""Through the brokers 4 s, from the bookies 2 s, and idle brokers use 0.1 s of CPU a second."""


@pytest.fixture
def found() -> dict[str, Any]:
    large = {
        "this_source": timed(2, 3, 2),
        "pulsar_client": timed(10, 11, 10),
        "java_source": timed(4, 4, 1),
        "ready": timed(1, 1, 1),
    }
    small = {"this_source": timed(5), "pulsar_client": timed(15), "java_source": timed(4)}
    batches = {
        "this_source": [[30.0, 31, 32], [50.0, 51, 52]],
        "empty_python_source": [[20.0, 20, 20], [30.0, 30, 30]],
        "rate": [[10.0, 10, 10], [10.0, 10, 10]],
    }
    made: dict[str, Any] = {"machine": MACHINE}
    for part in (
        source_results.reads(LARGE, large),
        source_results.reads(SMALL, small, "_small"),
        source_results.typed(
            {name: timed(3, 4, 3) for name in TYPED}
            | {name + AS_BYTES: timed(2, 2, 2) for name in TYPED}
            | {name + FROM_MEMORY: timed(2, 2, 2) for name in TYPED}
            | {name + AS_BYTES + FROM_MEMORY: timed(1.5, 1.5, 1) for name in TYPED}
        ),
        source_results.columns({column_reads.EVERY: timed(4, 5, 4), "key": timed(2, 2, 2), "count": timed(1, 1, 1)}),
        source_results.one_row(batches),
        source_results.segments({case.name: SEGMENTS for case in CASES}),
    ):
        merge(made, part)
    return made


def test_ratios_are_of_cpu_and_each_is_said_as_its_aim_is(found: dict[str, Any]) -> None:
    assert found["ratios"] == {
        "pulsar_client": 5.0,
        "java_source": 0.5,
        "ready": 0.5,
        "pulsar_client_small": 3.0,
        "java_source_small": 1.25,
        **{f"{name}_over_bytes": 1.5 for name in TYPED},
        "key_over_every_column": 0.5,
        "count_over_every_column": 0.25,
        "bookies": 0.25,
        "broker_cpu": 0.167,
        "broker_cpu_beyond_idle": 0.115,
        "bookies_small": 0.25,
        "broker_cpu_small": 0.167,
        "broker_cpu_beyond_idle_small": 0.115,
    }
    assert found["ratios"].keys() == source_results.AIMS.keys()
    assert found["ratios_of_rounds"]["java_source"] == {"min": 0.5, "median": 0.75, "max": 2.0}
    assert found["cpu_us_per_row"][LARGE.name]["this_source"] == {"min": 2.0, "median": 2.0, "max": 3.0}


def test_of_what_typed_values_cost_that_is_told_apart_which_no_decoder_can_save(found: dict[str, Any]) -> None:
    assert found["ratios_without_decoding"] == {f"{name}_over_bytes": 1.25 for name in TYPED}


def test_what_a_row_adds_is_compared_within_a_round(found: dict[str, Any]) -> None:
    batch = found["batch_ms"]
    assert (batch["added_p50"], batch["added_p50_over_rate"]) == (16.0, 31.0)
    assert batch["added_of_rounds"] == {"min": 11.0, "median": 16.0, "max": 21.0}


def test_the_page_and_the_terminal_show_the_same_figures(found: dict[str, Any]) -> None:
    written = page.page_with("<!-- source figures: begin -->\n<!-- source figures: end -->\n", "source", found)
    console = Console(record=True, width=200)
    show(console, found)
    shown = console.export_text()
    for figure in ("10.00", "1.25", "≥ 0.6", "16", "≤ 20", "json, nested", "0.167", "0.115"):
        assert figure in written
        assert figure in shown


def test_cpu_is_counted_for_each_turn_that_counts_and_for_nothing_between_them() -> None:
    class Reader:
        name = "reader"

        def run(self) -> int:
            next(used)
            return 7

    used = count()
    plan: Any = SourcePlan(broker=None, tell=lambda _: None, rounds=2, warm_ups=1)  # type: ignore[arg-type]
    found = take_turns([Reader()], plan, "title", 7, before=lambda: next(used), cpu=lambda: float(next(used)))
    assert found["reader"].cpu_seconds == (2.0, 2.0)
