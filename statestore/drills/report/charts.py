"""The geometry of the report's charts: numbers in, places on a canvas out. The template draws them.

Not matplotlib's SVG: shapes that the page stretches, with their text beside them in HTML, stay readable on a phone,
follow the reader's light or dark scheme by style sheet, and keep a report of an hour with 150 faults below a megabyte.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_low

from statestore.drills.journal import Sample
from statestore.drills.report.summary import FaultTimes

# Every canvas is this wide and high in its own units; the page stretches it to the room that there is.
WIDTH = 1000.0
HEIGHT = 100.0
BINS = 240
# Rows come out a batch at a time: a shorter stretch would show each batch as a peak beside nothing.
LEAST_STRETCH_S = 5.0
# After so long without a measurement a curve is interrupted.
GAP_S = 10.0


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis; `at` is percent from the left, or from the bottom."""

    at: float
    label: str


@dataclass(frozen=True)
class Axis:
    """From zero to `top`, in the unit of the data."""

    top: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> float:
        """Percent of the axis; what lies outside is put on its end."""
        return round(100 * min(max(value / self.top, 0.0), 1.0), 2)


@dataclass(frozen=True)
class Bar:
    """A stretch of time on the canvas; `note` says it in words, and `unfinished` has no end that was seen."""

    left: float
    width: float
    note: str = ""
    unfinished: bool = False


@dataclass(frozen=True)
class Plot:
    """One curve: `line` and the `area` below it are SVG paths, with gaps where nothing was measured."""

    line: str
    area: str
    axis: Axis
    label: str


@dataclass(frozen=True)
class Lane:
    """The faults of one family, each from the moment it was done to the moment the job had recovered."""

    family: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Strip:
    """The times of one kind of fault as dots, 0 to 1000 from the left; `middle` is the p50, one of them."""

    kind: str
    dots: tuple[float, ...]
    middle: float | None
    label: str


def axis(highest: float, label: Callable[[float], str], ticks: int = 4) -> Axis:
    """An axis from zero that holds `highest`, with about this many round numbers on it."""
    step = _round_step(max(highest, 1e-9) / ticks)
    count = max(1, math.ceil(highest / step - 1e-9))
    top = step * count
    return Axis(top, tuple(Tick(round(100 * i / count, 2), label(step * i)) for i in range(count + 1)))


def time_axis(seconds: float) -> Axis:
    """An axis that ends with the drill, labelled in minutes, or in seconds if it was a short one."""
    end = max(seconds, 1.0)
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
    step = next((step for step in steps if end / step <= 7), steps[-1])
    marks = [step * i for i in range(int(end // step) + 1)]
    return Axis(end, tuple(Tick(round(100 * mark / end, 2), clock(mark)) for mark in marks))


def clock(seconds: float) -> str:
    """Write a moment of a drill as minutes and seconds, or as hours, minutes and seconds."""
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def throughput(samples: Sequence[Sample], end: float) -> Plot | None:
    """Rows that came out in each second, or None without two samples that lie apart."""
    rates: dict[int, float] = {}
    stretch = max(end / BINS, LEAST_STRETCH_S)
    before: Sample | None = None
    for number, group in _stretches(samples, stretch).items():
        last = group[-1]
        if before is not None and last.t > before.t and last.rows_out >= before.rows_out:
            rates[number] = (last.rows_out - before.rows_out) / (last.t - before.t)
        before = last
    return _plot(rates, stretch, end, _rate, "rows out a second")


def latency(samples: Sequence[Sample], end: float) -> Plot | None:
    """The longest end-to-end latency in each stretch of time, in seconds, or None if none was measured.

    A sample that has no newer row than the one before it says nothing about latency, and counts as silence.
    """
    longest: dict[int, float] = {}
    stretch = max(end, 1.0) / BINS
    seen = 0
    for number, group in _stretches(samples, stretch).items():
        for sample in group:
            if sample.rows_out != seen and sample.latency_ms is not None:
                longest[number] = max(longest.get(number, 0.0), sample.latency_ms / 1000)
            seen = sample.rows_out
    return _plot(longest, stretch, end, _seconds, "seconds from row in to row out")


def shades(faults: Iterable[FaultTimes], end: float) -> tuple[Bar, ...]:
    """The stretches of time in which some fault was at work, joined where they overlap."""
    joined: list[tuple[float, float]] = []
    for start, stop in sorted((fault.t, _recovered(fault, end)) for fault in faults):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], stop))
        else:
            joined.append((start, stop))
    return tuple(_bar(start, stop, end) for start, stop in joined)


def lanes(faults: Iterable[FaultTimes], end: float) -> tuple[Lane, ...]:
    """One lane for each family of faults, in the order in which they first came."""
    found: dict[str, list[Bar]] = {}
    for fault in faults:
        seen = fault.recovered_s is not None
        done = f"recovered after {fault.recovered_s:.1f} s" if seen else "not seen to recover"
        note = f"fault {fault.n}, {fault.kind}, at {clock(fault.t)}: {done}"
        bar = _bar(fault.t, _recovered(fault, end), end, note, unfinished=not seen)
        found.setdefault(fault.family, []).append(bar)
    return tuple(Lane(family, tuple(bars)) for family, bars in found.items())


def strips(times: Mapping[str, Sequence[float]], target: float) -> tuple[Axis, tuple[Strip, ...]]:
    """The times to recover of each kind, on one axis that also holds the target."""
    scale = axis(max([target, *(time for kind in times.values() for time in kind)]), _seconds, 5)
    place = {kind: tuple(_across(time, scale.top) for time in sorted(found)) for kind, found in times.items()}
    rows = []
    for kind, found in times.items():
        label = f"{kind}: no time known"
        if found:
            label = (
                f"{kind}: {len(found)} times, {min(found):.1f} to {max(found):.1f} s, median {median_low(found):.1f} s"
            )
        rows.append(Strip(kind, place[kind], median_low(place[kind]) if found else None, label))
    return scale, tuple(rows)


def _recovered(fault: FaultTimes, end: float) -> float:
    return end if fault.recovered_s is None else fault.t + fault.recovered_s


def _stretches(samples: Sequence[Sample], seconds: float) -> dict[int, list[Sample]]:
    """The samples by the number of the stretch of time that they are in; both in order."""
    found: dict[int, list[Sample]] = {}
    for sample in sorted(samples, key=lambda sample: sample.t):
        found.setdefault(int(sample.t / seconds), []).append(sample)
    return found


def _plot(
    values: Mapping[int, float], stretch: float, end: float, label: Callable[[float], str], unit: str
) -> Plot | None:
    if not values:
        return None
    scale = axis(max(values.values()), label, 3)
    runs: list[list[tuple[float, float]]] = []
    previous = None
    for number, value in values.items():
        # Batches come every few seconds, and stretches may be shorter: only a longer silence is a gap.
        if previous is None or (number - previous) * stretch > max(GAP_S, 2 * stretch):
            runs.append([])
        runs[-1].append((_across((number + 0.5) * stretch, end), round(HEIGHT - HEIGHT * value / scale.top, 1)))
        previous = number
    curves = ["L".join(f"{x:g} {y:g}" for x, y in run) for run in runs]
    line = "".join(f"M{curve}" + ("h1" if len(run) == 1 else "") for curve, run in zip(curves, runs, strict=True))
    area = "".join(f"M{run[0][0]:g} {HEIGHT:g}L{curve}V{HEIGHT:g}Z" for curve, run in zip(curves, runs, strict=True))
    middle, highest = median(values.values()), max(values.values())
    return Plot(line, area, scale, f"{unit}: median {label(middle)}, highest {label(highest)}")


def _bar(start: float, stop: float, end: float, note: str = "", unfinished: bool = False) -> Bar:
    left = _across(start, max(end, 1.0))
    return Bar(left, max(round(_across(stop, max(end, 1.0)) - left, 1), 1.0), note, unfinished)


def _across(value: float, top: float) -> float:
    return round(WIDTH * min(max(value / top, 0.0), 1.0), 1)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value < 10 else f"{value:,.0f}"
