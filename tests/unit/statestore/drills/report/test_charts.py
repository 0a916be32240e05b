"""Where the charts of a report put things."""

from __future__ import annotations

import re

import pytest

from statestore.drills.journal import Sample
from statestore.drills.report import charts
from statestore.drills.report.summary import FaultTimes


def sample(t: float, rows_out: int, latency_ms: float | None = None) -> Sample:
    return Sample(t=t, job="a", rows_in=rows_out, rows_out=rows_out, latency_ms=latency_ms)


def fault(n: int, t: float, recovered_s: float | None, family: str = "driver") -> FaultTimes:
    return FaultTimes(
        n=n,
        kind=f"{family} killed",
        family=family,
        detail="",
        t=t,
        detected_s=None,
        fenced_s=None,
        recovered_s=recovered_s,
        caught_up_s=None,
    )


@pytest.mark.parametrize(("highest", "top"), [(0, 0), (1, 1), (7, 8), (99, 100), (1234, 1500), (0.004, 0.004)])
def test_an_axis_ends_with_a_round_number_above_all_values(highest: float, top: float) -> None:
    found = charts.axis(highest, str)
    assert found.top == pytest.approx(top, abs=1e-8)
    assert found.top >= highest
    assert [found.ticks[0].at, found.ticks[-1].at] == [0, 100]
    assert 2 <= len(found.ticks) <= 6


def test_an_axis_keeps_what_is_outside_on_its_ends() -> None:
    found = charts.axis(10, str)
    assert [found.at(value) for value in (-1, 0, 5, 10, 99)] == [0, 0, 50, 100, 100]


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0, ["0:00", "0:01"]),
        (3.5, ["0:00", "0:01", "0:02", "0:03"]),
        (60, ["0:00", "0:10", "0:20", "0:30", "0:40", "0:50", "1:00"]),
        (3332, ["0:00", "10:00", "20:00", "30:00", "40:00", "50:00"]),
        (7 * 3600, ["0:00", "1:00:00", "2:00:00", "3:00:00", "4:00:00", "5:00:00", "6:00:00", "7:00:00"]),
    ],
)
def test_the_axis_of_time_has_few_round_moments(seconds: float, labels: list[str]) -> None:
    assert [tick.label for tick in charts.time_axis(seconds).ticks] == labels


def test_a_week_still_fits_on_the_axis_of_time() -> None:
    assert len(charts.time_axis(7 * 86400).ticks) == 8


def test_throughput_is_the_slope_of_the_total() -> None:
    plot = charts.throughput([sample(second, 300 * second) for second in range(101)], end=100)
    assert plot is not None
    assert plot.label == "rows out a second: median 300, highest 300"
    heights = {float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", plot.line)}
    assert heights == {100 - plot.axis.at(300)}


def test_a_total_that_starts_again_is_no_negative_throughput() -> None:
    totals = [0, 100, 200, 10, 110]
    plot = charts.throughput([sample(10.0 * t, rows) for t, rows in enumerate(totals)], end=50)
    assert plot is not None
    assert plot.label.endswith("median 10, highest 10")
    assert max(float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", plot.line)) <= 100


@pytest.mark.parametrize("samples", [[], [sample(1, 5)]])
def test_no_throughput_of_less_than_two_samples(samples: list[Sample]) -> None:
    assert charts.throughput(samples, end=10) is None


def test_latency_is_the_longest_of_each_stretch_and_has_gaps() -> None:
    known = [sample(t / 10, 1 + t, 100.0 * t) for t in range(20)]
    silent = [sample(float(t), 21, None) for t in range(2, 80)]
    plot = charts.latency([*known, *silent, sample(90, 22, 500.0)], end=100)
    assert plot is not None
    assert plot.label == "seconds from row in to row out: median 1, highest 1.9"
    assert plot.line.count("M") == 2, "what was before the silence, and what came after"
    assert plot.area.count("Z") == 2
    assert charts.latency(silent, end=100) is None


def test_the_latency_of_a_row_counts_when_the_row_is_new() -> None:
    """While nothing comes out, the newest row's latency is still known; it says nothing about that time."""
    samples = [sample(float(t), min(t, 10), 1000.0) for t in range(1, 60)]
    plot = charts.latency([*samples, sample(60, 50, 48_000.0)], end=60)
    assert plot is not None
    assert plot.line.count("M") == 2
    assert plot.label.endswith("median 1, highest 48")


def test_a_batch_every_few_seconds_is_a_steady_flow() -> None:
    samples = [sample(float(t), 40 * (t // 4)) for t in range(121)]
    plot = charts.throughput(samples, end=120)
    assert plot is not None
    assert "median 8," in plot.label, plot.label
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", plot.line)]
    assert max(heights) < 100, "it never falls to nothing"


def test_long_drills_make_no_longer_curves() -> None:
    plot = charts.throughput([sample(float(t), 7 * t) for t in range(20_000)], end=20_000)
    assert plot is not None
    assert plot.line.count("L") < charts.BINS


def test_overlapping_faults_are_shaded_once() -> None:
    found = charts.shades([fault(1, 10, 20), fault(2, 20, 5), fault(3, 50, 10), fault(4, 90, None)], end=100)
    assert [(bar.left, bar.width) for bar in found] == [(100, 200), (500, 100), (900, 100)]


def test_each_family_has_a_lane_and_each_fault_a_bar() -> None:
    found = charts.lanes([fault(1, 10, 20.04), fault(2, 30, None, "broker"), fault(3, 75, 1)], end=100)
    assert [(lane.family, len(lane.bars)) for lane in found] == [("driver", 2), ("broker", 1)]
    assert found[0].bars[0].note == "fault 1, driver killed, at 0:10: recovered after 20.0 s"
    assert found[1].bars[0].note == "fault 2, broker killed, at 0:30: not seen to recover"
    assert [bar.unfinished for lane in found for bar in lane.bars] == [False, False, True]


def test_strips_share_an_axis_with_the_target() -> None:
    axis, strips = charts.strips({"a": [1.0, 3.0, 8.0], "b": []}, target=20)
    assert axis.top == 20
    assert [(strip.dots, strip.middle) for strip in strips] == [((50, 150, 400), 150), ((), None)]
    assert [strip.label for strip in strips] == ["a: 3 times, 1.0 to 8.0 s, median 3.0 s", "b: no time known"]
