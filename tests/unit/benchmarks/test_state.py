"""The figures of `make bench-state` from made-up turns, and the page that shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.benchmarks import page, state_results
from tests.benchmarks.rounds import Timed
from tests.benchmarks.state_table import show
from tests.benchmarks.stateful import Batch, Turn

TURN = Turn([], restart_s=2.0, rows=10, seconds=10.0, written=4, zookeeper_writes=30, ledgers=0)
MACHINE = {"cpu": "a CPU", "cores": 2, "memory_gib": 8, "load_before": 0.1, "python": "3.11.1"} | dict.fromkeys(
    ("pulsar", "pyspark", "hadoop", "java"), "1.0"
)


def turn(*commits: float, **other: Any) -> Turn:
    return replace(TURN, batches=[Batch(1.0, commit - 3.0, 2.0, 100.0) for commit in commits], **other)


@pytest.fixture
def found() -> dict[str, Any]:
    turns = {
        8: {
            "file": [turn(20, 20, 30), turn(10, 20, 20)],
            "bk": [turn(29, 30, 31, zookeeper_writes=70, ledgers=1), turn(15, 30, 90, zookeeper_writes=90, ledgers=1)],
            "hdfs": [turn(60, 60, 60), turn(60, 60, 60)],
        },
        200: {
            "file": [turn(100)],
            "bk": [turn(300, zookeeper_writes=830, ledgers=2)],
            "hdfs": [turn(600)],
        },
    }
    timed = {
        "write": {"file": Timed(100, (0.5,)), "bk": Timed(100, (2.0, 1.0, 3.0)), "raw": Timed(100, (1.0,))},
        "read": {"file": Timed(100, (0.5,)), "bk": Timed(100, (1.0,)), "raw": Timed(100, (0.8,))},
    }
    made: dict[str, Any] = {"machine": MACHINE, **state_results.large_file(timed)}
    later = state_results.stateful(turns)
    return {
        **made,
        **later,
        "ratios": made["ratios"] | later["ratios"],
        "rounds": made["rounds"] | later["rounds"],
    }


def test_ratios_are_those_of_the_medians(found: dict[str, Any]) -> None:
    assert found["ratios"] == {"raw_write": 0.5, "raw_read": 0.8, "hdfs_200": 0.5, "file_8": 1.5}
    assert found["ratios_of_rounds"]["file_8"] == {"min": 1.5, "median": 1.5, "max": 1.5}


def test_what_others_write_to_zookeeper_meanwhile_is_taken_off(found: dict[str, Any]) -> None:
    assert found["zookeeper_writes_per_s_without_bk"] == 3.0
    assert found["state_8"]["zookeeper_writes_per_batch"] == (70 + 90 - 2 * 30) / 8
    assert found["state_200"]["zookeeper_writes_per_batch"] == 800 / 4
    assert found["state_8"]["ledgers_per_batch"] == 0.25


def test_the_parts_of_a_commit_and_its_spread_over_the_rounds_are_told(found: dict[str, Any]) -> None:
    told = found["state_8"]["commit_ms"]["bk"]
    assert (told["p50"], told["batches"]) == (30.0, 6)
    assert told["p50_of_rounds"] == {"min": 30.0, "median": 30.0, "max": 30.0}
    assert 30.0 < told["p99"] <= 90.0
    assert (told["wal_p50"], told["state_p50"], told["log_p50"]) == (1.0, 27.0, 2.0)


def test_a_run_that_was_interrupted_has_what_was_measured_before() -> None:
    found = state_results.stateful({8: {"file": [turn(10)], "bk": [turn(12)]}, 200: {"file": [turn(40)], "bk": []}})
    assert found["ratios"] == {"file_8": 1.2}
    assert "state_200" not in found
    assert len(found["rounds"]["state_200"]["file"]) == 1


def test_the_page_and_the_terminal_show_the_same_figures(found: dict[str, Any]) -> None:
    text = "before\n<!-- state figures: begin -->\nold\n<!-- state figures: end -->\nafter\n"
    written = page.page_with(text, "state", found)
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "old" not in written
    assert page.page_with(written, "state", found) == written
    console = Console(record=True, width=200)
    show(console, found)
    shown = console.export_text()
    for figure in ("12.5", "0.25", "≤ 1.5", "≥ 0.6"):
        assert figure in written
        assert figure in shown


def test_the_page_of_this_repository_has_a_place_for_each_benchmark() -> None:
    text = page.PAGE.read_text()
    for about in page.FIGURES:
        assert text.count(f"<!-- {about} figures: begin -->\n") == 1
        assert text.count(f"<!-- {about} figures: end -->\n") == 1
