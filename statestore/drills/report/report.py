"""The report of a drill: one HTML page that needs nothing but itself, and the same as JSON, from the journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from jinja2 import Environment, PackageLoader, StrictUndefined

from statestore.drills.journal import Ended, StateEvent, TransactionsEvent, read
from statestore.drills.report import charts
from statestore.drills.report.charts import Axis, Bar, Lane, Plot, Strip
from statestore.drills.report.summary import DrillReport, FaultKindSummary, FaultTimes, summarize
from statestore.errors import InvalidInput

NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Phase:
    """A part of a fault's course: what it ended with, its seconds, and their percent of the kind's longest course."""

    until: str
    seconds: float
    percent: float


@dataclass(frozen=True)
class Course:
    """A fault, and the phases from the moment it was done to the last that was seen of it."""

    fault: FaultTimes
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class KindOfFault:
    """The faults of one kind; `recovered_s` has the seconds of those that were seen to recover."""

    name: str
    family: str
    numbers: FaultKindSummary
    recovered_s: tuple[float, ...]
    courses: tuple[Course, ...]

    @property
    def longest_s(self) -> float | None:
        """The longest time to recover that was seen."""
        return max(self.recovered_s, default=None)

    @property
    def recovered(self) -> int:
        """How many were seen to recover."""
        return len(self.recovered_s)


@dataclass(frozen=True)
class Curves:
    """How one job went along, each curve None if nothing was measured."""

    job: str
    throughput: Plot | None
    latency: Plot | None


@dataclass(frozen=True)
class Restores:
    """The known facts of a job's state: its last batch with versions, and how fast it was restored, in MB/s."""

    job: str
    batch: int
    versions: int
    restores: int
    middle_mb_s: float | None
    slowest_mb_s: float | None


@dataclass(frozen=True)
class Offenders:
    """The ids of the first rows or batches of a job that are not as they should be."""

    job: str
    kind: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """The parts that the template shows beside the report itself.

    Attributes:
        seconds: from the beginning of the drill to its last event.
        counted: whether it is of a drill that counts rows, or should have.
        sections: the name and the title of each section that has something to show.
    """

    seconds: float
    counted: bool
    ended: Ended | None
    kinds: tuple[KindOfFault, ...]
    time: Axis
    shades: tuple[Bar, ...]
    lanes: tuple[Lane, ...]
    curves: tuple[Curves, ...]
    strip_axis: Axis
    strips: tuple[Strip, ...]
    transactions: tuple[TransactionsEvent, ...]
    restores: tuple[Restores, ...]
    not_done: tuple[str, ...]
    offenders: tuple[Offenders, ...]
    sections: tuple[tuple[str, str], ...]


def write_report(journal: Path, html: Path, json: Path) -> DrillReport:
    """Write the report of a journal, whether its drill has ended or not, and return what it holds.

    Args:
        journal: as `statestore.drills.journal` wrote it.
        html: where the page goes. Its folder is made; a page that is there is written over.
        json: where the same goes as JSON.

    Raises:
        NotFound: there is no such journal.
        InvalidInput: it is not a journal of a drill.
        InvalidInput: a file can't be written, or would be written over the journal.
    """
    report = summarize(read(journal))
    if journal.resolve() in (html.resolve(), json.resolve()):
        raise InvalidInput(f"The report would be written over the journal {journal}. Name another file for it.")
    _write(json, report.to_json())
    _write(html, render(report))
    return report


def render(report: DrillReport) -> str:
    """Return the page as HTML. Texts from the journal are escaped, and nothing is fetched from anywhere."""
    return _templates().get_template("report.html.j2").render(page=page(report), report=report)


@cache
def _templates() -> Environment:
    """The templates, each compiled once."""
    environment = Environment(
        loader=PackageLoader("statestore.drills.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"seconds": _seconds, "count": _count, "clock": charts.clock, "duration": _duration}
    return environment


def page(report: DrillReport) -> Page:
    """Derive what the page shows."""
    end = max((event.t for event in report.events), default=0.0)
    every = (_kind(name, kind, report.faults) for name, kind in report.summary.by_kind.items())
    kinds = tuple(sorted(every, key=lambda kind: (kind.family, kind.name)))
    times = {kind.name: kind.recovered_s for kind in kinds}
    strip_axis, strips = charts.strips(times, report.began.targets.recover_s)
    done = {fault.n for fault in report.faults}
    return Page(
        seconds=end,
        counted=_counted(report),
        ended=next((event for event in report.events if isinstance(event, Ended)), None),
        kinds=kinds,
        time=charts.time_axis(end),
        shades=charts.shades(report.faults, end),
        lanes=charts.lanes(report.faults, end),
        curves=tuple(_curves(job.job, report, end) for job in report.jobs),
        strip_axis=strip_axis,
        strips=strips,
        transactions=tuple({found.job: found for found in report.transactions}.values()),
        restores=tuple(_restores(report.states)),
        not_done=tuple(planned.kind for planned in report.began.plan if planned.n not in done),
        offenders=tuple(_offenders(report)),
        sections=tuple(_sections(report)),
    )


def _counted(report: DrillReport) -> bool:
    return report.began.drill == "chaos" or any(job.account for job in report.jobs)


def _sections(report: DrillReport) -> Iterator[tuple[str, str]]:
    """The template's name and the title of each section that has something to show, in their order."""
    chaos, counted = report.began.drill == "chaos", _counted(report)
    sections = (
        ("reasons", f"Why {report.summary.verdict}", bool(report.summary.reasons)),
        ("accounts", "Input and output" if counted else "Checked jobs", bool(report.jobs)),
        ("recovery", "Time to recover", bool(report.faults)),
        ("timeline", "Timeline of each fault", chaos or bool(report.faults)),
        ("course", "Throughput and latency", chaos or bool(report.samples)),
        ("steps", "Steps", bool(report.steps)),
        (
            "transactions",
            "Transactions and state" if chaos or report.transactions else "State",
            chaos or bool(report.transactions or report.states),
        ),
        ("checks", "Other checks" if counted else "Checks", bool(report.checks)),
        ("limits", "Not tested", True),
        ("again", "Run it again", True),
    )
    yield from ((name, title) for name, title, shown in sections if shown)


def _offenders(report: DrillReport) -> Iterator[Offenders]:
    for job in report.jobs:
        for kind, ids in (job.account.offenders if job.account else {}).items():
            if ids:
                yield Offenders(job.job, kind, ids)
        if job.readers and job.readers.offenders:
            yield Offenders(job.job, "torn, seen by a live reader", job.readers.offenders)


def _kind(name: str, numbers: FaultKindSummary, faults: Iterable[FaultTimes]) -> KindOfFault:
    those = [fault for fault in faults if fault.kind == name]
    longest = max((seconds for fault in those for seconds in _ends(fault).values()), default=0.0)
    return KindOfFault(
        name=name,
        family=those[0].family,
        numbers=numbers,
        recovered_s=tuple(fault.recovered_s for fault in those if fault.recovered_s is not None),
        courses=tuple(Course(fault, _phases(fault, longest)) for fault in those),
    )


def _ends(fault: FaultTimes) -> dict[str, float]:
    """The seconds until each thing that was seen."""
    ends = {
        "detected": fault.detected_s,
        "fenced": fault.fenced_s,
        "recovered": fault.recovered_s,
        "caught up": fault.caught_up_s,
    }
    return {name: seconds for name, seconds in ends.items() if seconds is not None}


def _phases(fault: FaultTimes, longest: float) -> tuple[Phase, ...]:
    """The phases in the order in which they ended; a thing that wasn't seen ends no phase."""
    ends = sorted(_ends(fault).items(), key=lambda end: end[1])
    starts = [0.0, *(seconds for _, seconds in ends)]
    return tuple(
        Phase(name, round(stop - start, 3), round(100 * (stop - start) / (longest or 1.0), 1))
        for start, (name, stop) in zip(starts, ends, strict=False)
    )


def _curves(job: str, report: DrillReport, end: float) -> Curves:
    samples = [sample for sample in report.samples if sample.job == job]
    return Curves(job, charts.throughput(samples, end), charts.latency(samples, end))


def _restores(states: Sequence[StateEvent]) -> Iterator[Restores]:
    for job in dict.fromkeys(state.job for state in states):
        those = [state for state in states if state.job == job]
        speeds = [state.restore_mb_s for state in those if state.restore_mb_s is not None]
        yield Restores(
            job=job,
            batch=those[-1].batch,
            versions=those[-1].versions,
            restores=len(speeds),
            middle_mb_s=median(speeds) if speeds else None,
            slowest_mb_s=min(speeds, default=None),
        )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The report can't be written to {path}: {error.strerror}. Name another file.") from error


def _seconds(value: float | None) -> str:
    """Write seconds for people: 0.31 s, 4.2 s, 41 s."""
    if value is None:
        return NOT_SEEN
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"


def _duration(seconds: float) -> str:
    """Write how long something took: 48 s, 55 min 32 s, 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _count(value: float | None) -> str:
    return NOT_SEEN if value is None else f"{value:,}"
