"""The figures of `make bench-formats` from made-up turns, and the page that shows them."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from tests.benchmarks import page, results
from tests.benchmarks.formats_results import LABELS, formats, show
from tests.benchmarks.rounds import Timed
from tests.benchmarks.table import lines_of

MACHINE = {"cpu": "a CPU", "cores": 2, "memory_gib": 8, "load_before": 0.1, "python": "3.11.1"} | dict.fromkeys(
    ("pulsar", "pyspark", "pulsar-client"), "1.0"
)
SECONDS = {
    "raw": (1.0, 2.0, 4.0),
    "json": (2.0, 4.0, 8.0),
    "avro": (4.0, 4.0, 4.0),
    "protobuf": (8.0, 5.0, 8.0),
    "client_avro": (10.0, 20.0, 40.0),
    "client_protobuf": (16.0, 16.0, 16.0),
}


@pytest.fixture
def found() -> dict[str, Any]:
    timed = {name: Timed(1_000_000, seconds, tuple(2 * one for one in seconds)) for name, seconds in SECONDS.items()}
    return {"machine": MACHINE} | formats(timed)


def test_formats_are_compared_with_raw_values_and_with_the_client(found: dict[str, Any]) -> None:
    assert found["ratios"] == {"json": 0.5, "avro": 0.5, "protobuf": 0.25}
    assert found["client_ratios"] == {"avro": 5.0, "protobuf": 2.0}
    assert found["ratios_of_rounds"]["avro"] == {"min": 0.25, "median": 0.5, "max": 1.0}
    assert found["client_ratios_of_rounds"]["protobuf"] == {"min": 2.0, "median": 2.0, "max": 3.2}
    assert found["cpu_us_per_row"]["raw"] == {"min": 2.0, "median": 4.0, "max": 8.0}
    assert found["rounds"]["json"] == {
        "rows": 1_000_000,
        "seconds": [2.0, 4.0, 8.0],
        "cpu_seconds": [4.0, 8.0, 16.0],
    }


def test_the_table_has_every_contender_and_what_is_aimed_at(found: dict[str, Any]) -> None:
    console = Console(record=True, width=200)
    show(console, found)
    shown = console.export_text()
    assert all(label in shown for label in LABELS.values())
    text = page.page_with("a\n<!-- formats figures: begin -->\nold\n<!-- formats figures: end -->\nz", "formats", found)
    assert "old" not in text
    assert "| this sink, JSON | 250,000 | 125,000 to 500,000 | 8.00 | 0.5 (≥ 0.5) |  |" in text
    assert "| this sink, AVRO | 250,000 | 250,000 to 250,000 | 8.00 | 0.5 | 5 (≥ 5) |" in text
    assert text.endswith("z")


def test_the_page_has_a_place_for_the_table(found: dict[str, Any]) -> None:
    before = page.PAGE.read_text()
    assert "1,000,000 records, medians of 3 rounds" in page.page_with(before, "formats", found)
    assert page.page_with(before, "formats", found).endswith(before[-100:])


# ---- the sink's figures


ROWS = 500_000


def timed(seconds: float, cpu: float, broker: float) -> Timed:
    return Timed(ROWS, (seconds,) * 3, (cpu,) * 3, (broker,) * 3)


FOUND = results.throughput(
    {
        "this_sink": timed(1, 0.75, 0.5),
        "tls": timed(1.25, 1, 0.75),
        "metrics": timed(1.5, 0.9, 0.5),
        "java_txn": timed(2, 1, 0.5),
        "pulsar_client": timed(20, 10, 0.5),
        "ceiling": timed(0.5, 0.5, 0),
    }
)


def test_the_cpu_is_that_of_a_million_rows_and_the_sinks_own_is_over_counting() -> None:
    cpu = FOUND["cpu"]
    assert (cpu["sink"], cpu["sink_over_counting"], cpu["java"], cpu["pulsar_client"]) == (1.5, 0.5, 2.0, 20.0)
    assert cpu["ratios"] == {"java": 0.25, "pulsar_client": 0.025, "metrics": 1.2}
    assert cpu["broker"] == 1.0
    assert cpu["broker_of_each"]["tls"]["median"] == 1.5


def test_the_ratios_of_tls_and_metrics_are_what_they_cost() -> None:
    assert FOUND["ratios"] == {"tls": 1.25, "metrics": 1.5, "java_txn": 2.0, "pulsar_client": 20.0, "ceiling": 0.5}
    aims = {name: (ratio, aim) for name, ratio, *_, aim in lines_of(FOUND)}
    assert aims["tls"] == ("1.25", "≤ 1.3")
    assert aims["metrics"] == ("1.5", "≤ 1.02")
    assert aims["ceiling"] == ("0.5", "≥ 0.55")
    assert aims["this_sink"] == ("", "")
