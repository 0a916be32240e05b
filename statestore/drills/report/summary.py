"""The sum of a journal: the verdict, the accounts, and the time to recover from each fault.

Pure: events in, a `DrillReport` out. FAIL says that something is wrong for sure. PASS needs evidence for everything
that was planned. Anything else is UNKNOWN, with its reasons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from pydantic import TypeAdapter

from statestore.drills.journal import (
    AccountEvent,
    Began,
    CaughtUp,
    CheckEvent,
    Detected,
    Ended,
    Event,
    Fault,
    FencedEvent,
    JobEvent,
    NotTested,
    ReadersEvent,
    Recovered,
    Sample,
    StateEvent,
    StepEvent,
    TransactionsEvent,
)
from statestore.drills.judge.findings import Verdict, counted
from statestore.errors import InvalidInput


@dataclass(frozen=True)
class Percentiles:
    """Half of the values are at most `p50`, 95 of 100 at most `p95`; both are values that were seen. None of none."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True)
class FaultKindSummary:
    """The faults of one kind: how many were done, and the seconds until the first batch after each."""

    count: int
    recover_s: Percentiles


@dataclass(frozen=True)
class Errors:
    """The faults of the output, over the jobs where they were counted: numbers of rows, and of batches for `torn`.

    None: they were counted in no job.
    """

    lost: int | None
    duplicated: int | None
    torn: int | None
    unexpected: int | None
    out_of_order: int | None


@dataclass(frozen=True)
class Summary(Errors):
    """The drill in a few numbers.

    Attributes:
        sentence: verdict and numbers, to be read by a human.
        counted_in: fault of the output, and the number of jobs where it was counted.
        faults: how many were done.
        by_kind: kind of fault, and what is known of it.
        recover_s: seconds from a fault to the first batch after it, over all faults.
        data_at_risk_rows: the most rows that one job's input was ahead of its output; None without samples.
        within_targets: of the targets that were stated and measured, whether each was kept. A fault without a recovery
            counts too: it took as long as the journal goes on, or longer.
        reasons: why the verdict isn't PASS; empty if it is.
    """

    verdict: Verdict
    sentence: str
    counted_in: Mapping[str, int]
    faults: int
    by_kind: Mapping[str, FaultKindSummary]
    recover_s: Percentiles
    data_at_risk_rows: int | None
    within_targets: Mapping[str, bool]
    seed: int | None
    rerun: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class FaultTimes:
    """A fault that was done at `t`, and seconds from then until each thing was first seen; None: it wasn't seen."""

    n: int
    kind: str
    family: str
    detail: str
    t: float
    detected_s: float | None
    fenced_s: float | None
    recovered_s: float | None
    caught_up_s: float | None


@dataclass(frozen=True)
class JobFindings:
    """A job, and the last that was said about its output."""

    job: str
    stateful: bool
    topic: str
    checkpoint: str
    account: AccountEvent | None
    readers: ReadersEvent | None


@dataclass(frozen=True)
class DrillReport:
    """All that a journal holds, put in order."""

    summary: Summary
    began: Began
    jobs: tuple[JobFindings, ...]
    faults: tuple[FaultTimes, ...]
    checks: tuple[CheckEvent, ...]
    steps: tuple[StepEvent, ...]
    samples: tuple[Sample, ...]
    transactions: tuple[TransactionsEvent, ...]
    states: tuple[StateEvent, ...]
    not_tested: tuple[NotTested, ...]
    events: tuple[Event, ...]

    def to_json(self) -> str:
        """Return the report as one JSON object, indented."""
        return _REPORT.dump_json(self, indent=2).decode() + "\n"


T = TypeVar("T")
_REPORT: TypeAdapter[DrillReport] = TypeAdapter(DrillReport)


def summarize(events: Sequence[Event]) -> DrillReport:
    """Put the events of a journal in order and come to a verdict.

    Raises:
        InvalidInput: the first event isn't `began`.
    """
    if not events or not isinstance(began := events[0], Began):
        raise InvalidInput("These are not the events of a drill. The first must be `began`.")
    faults = tuple(_fault_times(events))
    return DrillReport(
        summary=_summary(began, faults, events),
        began=began,
        jobs=tuple(_findings(job, events) for job in _of(JobEvent, events)),
        faults=faults,
        checks=_of(CheckEvent, events),
        steps=_of(StepEvent, events),
        samples=_of(Sample, events),
        transactions=_of(TransactionsEvent, events),
        states=_of(StateEvent, events),
        not_tested=_of(NotTested, events),
        events=tuple(events),
    )


def _of(kind: type[T], events: Iterable[Event]) -> tuple[T, ...]:
    return tuple(event for event in events if isinstance(event, kind))


def _fault_times(events: Sequence[Event]) -> Iterator[FaultTimes]:
    for fault in _of(Fault, events):

        def until(kind: type[Detected | FencedEvent | Recovered | CaughtUp], fault: Fault = fault) -> float | None:
            seen = (event.t for event in _of(kind, events) if event.n == fault.n)
            first = next(seen, None)
            return None if first is None else round(first - fault.t, 3)

        yield FaultTimes(
            n=fault.n,
            kind=fault.kind,
            family=fault.family,
            detail=fault.detail,
            t=fault.t,
            detected_s=until(Detected),
            fenced_s=until(FencedEvent),
            recovered_s=until(Recovered),
            caught_up_s=until(CaughtUp),
        )


def _findings(job: JobEvent, events: Sequence[Event]) -> JobFindings:
    accounts = [account for account in _of(AccountEvent, events) if account.job == job.job]
    readers = [seen for seen in _of(ReadersEvent, events) if seen.job == job.job]
    return JobFindings(
        job=job.job,
        stateful=job.stateful,
        topic=job.topic,
        checkpoint=job.checkpoint,
        account=accounts[-1] if accounts else None,
        readers=readers[-1] if readers else None,
    )


def _summary(began: Began, faults: tuple[FaultTimes, ...], events: Sequence[Event]) -> Summary:
    wrong = tuple(_wrong(events))
    missing = tuple(_missing(began, faults, events))
    errors = {error.name: _by_job(error.name, events) for error in fields(Errors)}
    recover_s = _percentiles(faults)
    verdict = Verdict.FAIL if wrong else Verdict.UNKNOWN if missing else Verdict.PASS
    at_risk = max((sample.rows_in - sample.rows_out for sample in _of(Sample, events)), default=None)
    within = _in_time(faults, max(event.t for event in events), began.targets.recover_s)
    if at_risk is not None:
        within["data_at_risk_rows"] = at_risk <= began.targets.data_at_risk_rows
    reasons = wrong + missing
    return Summary(
        **{name: sum(counts.values()) if counts else None for name, counts in errors.items()},
        verdict=verdict,
        sentence=_sentence(verdict, len(faults), _in_words(errors, events), recover_s, reasons),
        counted_in={name: len(counts) for name, counts in errors.items()},
        faults=len(faults),
        by_kind={kind: _kind(kind, faults) for kind in dict.fromkeys(fault.kind for fault in faults)},
        recover_s=recover_s,
        data_at_risk_rows=at_risk,
        within_targets=within,
        seed=began.seed,
        rerun=began.rerun,
        reasons=reasons,
    )


def _wrong(events: Sequence[Event]) -> Iterator[str]:
    """Say what makes the drill fail."""
    for account in _of(AccountEvent, events):
        if account.verdict is Verdict.FAIL:
            yield f"Job {account.job}: {account.reason}"
    for seen in _of(ReadersEvent, events):
        if seen.torn:
            yield f"Readers of job {seen.job} saw {seen.torn} torn batches while it ran: {', '.join(seen.offenders)}."
    for check in _of(CheckEvent, events):
        if not check.passed:
            yield f"Check failed: {check.name}. {check.detail}".rstrip()


def _missing(began: Began, faults: tuple[FaultTimes, ...], events: Sequence[Event]) -> Iterator[str]:
    """Say what a PASS lacks."""
    ends = _of(Ended, events)
    if not ends:
        yield "The journal has no end. The drill died, or is still running."
    for end in ends:
        if end.interrupted or end.reason:
            how = "was interrupted" if end.interrupted else "ended early"
            yield f"The drill {how}: {end.reason or 'no reason is known'}".removesuffix(".") + "."
    not_done = {planned.n: planned.kind for planned in began.plan}
    for fault in faults:
        not_done.pop(fault.n, None)
    yield from (f"Fault {n} ({kind}) was planned and not done." for n, kind in not_done.items())
    for fault in faults:
        if fault.recovered_s is None:
            yield f"No batch was seen to be committed after fault {fault.n} ({fault.kind})."
    accounts = {account.job: account for account in _of(AccountEvent, events)}
    for account in accounts.values():
        if account.verdict is Verdict.UNKNOWN:
            yield f"Job {account.job}: {account.reason}"
    if began.drill == "chaos":
        yield from (f"Job {job.job} has no account." for job in _of(JobEvent, events) if job.job not in accounts)
    if not accounts and not _of(CheckEvent, events):
        yield "Nothing was accounted for or checked."


def _by_job(error: str, events: Sequence[Event]) -> dict[str, int]:
    """Count one of `Errors` in each job where that is known; of several accounts of one job the worst counts."""
    said: dict[str, list[int | None]] = defaultdict(list)
    for account in _of(AccountEvent, events):
        said[account.job].append(getattr(account, error))
    for seen in _of(ReadersEvent, events):
        if error == "torn":
            said.setdefault(seen.job, [None]).append(seen.torn)  # without an account it isn't known
    worst = {job: counted(max(count or 0 for count in counts), None not in counts) for job, counts in said.items()}
    return {job: count for job, count in worst.items() if count is not None}


def _in_time(faults: Iterable[FaultTimes], end: float, target_s: float) -> dict[str, bool]:
    """Tell whether 95 of 100 faults were got over in time, if that is known of enough of them."""
    least = [end - fault.t if fault.recovered_s is None else fault.recovered_s for fault in faults]
    most = [float("inf") if fault.recovered_s is None else fault.recovered_s for fault in faults]
    if not least:
        return {}
    kept, missed = _nearest(most, 95) <= target_s, _nearest(least, 95) > target_s
    return {"recover_s": kept} if kept or missed else {}


def _kind(kind: str, faults: Iterable[FaultTimes]) -> FaultKindSummary:
    those = [fault for fault in faults if fault.kind == kind]
    return FaultKindSummary(count=len(those), recover_s=_percentiles(those))


def _percentiles(faults: Iterable[FaultTimes]) -> Percentiles:
    seconds = [fault.recovered_s for fault in faults if fault.recovered_s is not None]
    if not seconds:
        return Percentiles(None, None)
    return Percentiles(_nearest(seconds, 50), _nearest(seconds, 95))


def _nearest(seconds: Sequence[float], percent: int) -> float:
    """The least of them that so many percent are not above."""
    return float(np.percentile(seconds, percent, method="inverted_cdf"))


def _sentence(verdict: Verdict, faults: int, findings: str, recover_s: Percentiles, reasons: tuple[str, ...]) -> str:
    what = f"{faults} fault{'' if faults == 1 else 's'}, " if faults else ""
    recovery = "" if recover_s.p95 is None else f"; 95 of 100 recoveries took at most {recover_s.p95:.1f} s"
    more = f" And {len(reasons) - 1} more." if len(reasons) > 1 else ""
    reason = f" {reasons[0]}{more}" if reasons else ""
    return f"{verdict}: {what}{findings}{recovery}.{reason}"


_IN_WORDS = {
    "lost": "rows lost",
    "duplicated": "duplicated",
    "unexpected": "unexpected",
    "out_of_order": "out of order",
    "torn": "torn batches",
}


def _in_words(errors: Mapping[str, Mapping[str, int]], events: Sequence[Event]) -> str:
    """Say what was counted; a drill without an account knows of no row, and has only checks to tell of."""
    accounts = _of(AccountEvent, events)
    if not accounts:
        checks = _of(CheckEvent, events)
        return f"{sum(check.passed for check in checks)} of {len(checks)} checks passed" if checks else "no row counted"
    jobs = len({one.job for one in _of(JobEvent, events)} | {one.job for one in accounts})
    said = [(_IN_WORDS[name], errors[name]) for name in _IN_WORDS]
    words = [
        f"{sum(counts.values())} {what}" + ("" if len(counts) == jobs else f" in {len(counts)} of {jobs} jobs")
        for what, counts in said
        if counts
    ]
    not_counted = [what for what, counts in said if not counts]
    return ", ".join(words) + (f" (not counted: {', '.join(not_counted)})" if not_counted else "")
