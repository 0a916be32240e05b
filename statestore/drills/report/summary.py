"""The sum of a journal: the verdict, the accounts, and the time to recover from each fault.

Pure: events in, a `DrillReport` out. FAIL says that something is wrong for sure. PASS needs evidence for everything
that was planned. Anything else is UNKNOWN, with its reasons.
"""

from __future__ import annotations

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
from statestore.drills.judge.findings import Verdict
from statestore.errors import Damaged


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
    """The faults of the output, over all jobs: numbers of rows, and of batches for `torn`."""

    lost: int
    duplicated: int
    torn: int
    unexpected: int
    out_of_order: int


@dataclass(frozen=True)
class Summary(Errors):
    """The drill in a few numbers.

    Attributes:
        sentence: verdict and numbers, to be read by a human.
        faults: how many were done.
        by_kind: kind of fault, and what is known of it.
        recover_s: seconds from a fault to the first batch after it, over all faults.
        data_at_risk_rows: the most rows that one job's input was ahead of its output; None without samples.
        within_targets: of the targets that were stated and measured, whether each was kept.
        reasons: why the verdict isn't PASS; empty if it is.
    """

    verdict: Verdict
    sentence: str
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
        Damaged: the first event isn't `began`.
    """
    if not events or not isinstance(began := events[0], Began):
        raise Damaged("These are not the events of a drill. The first must be `began`.")
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
    errors = _errors(events)
    recover_s = _percentiles(faults)
    verdict = Verdict.FAIL if wrong else Verdict.UNKNOWN if missing else Verdict.PASS
    at_risk = max((sample.rows_in - sample.rows_out for sample in _of(Sample, events)), default=None)
    within = {}
    if recover_s.p95 is not None:
        within["recover_s"] = recover_s.p95 <= began.targets.recover_s
    if at_risk is not None:
        within["data_at_risk_rows"] = at_risk <= began.targets.data_at_risk_rows
    reasons = wrong + missing
    return Summary(
        **{error.name: getattr(errors, error.name) for error in fields(Errors)},
        verdict=verdict,
        sentence=_sentence(verdict, len(faults), _in_words(errors, events), recover_s, reasons),
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
            yield f"Job {seen.job}: readers saw {seen.torn} torn batches while it ran: {', '.join(seen.offenders)}."
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


def _errors(events: Sequence[Event]) -> Errors:
    """Add up over the jobs; of several accounts of one job the worst counts."""
    worst: dict[tuple[str, str], int] = {}
    for account in _of(AccountEvent, events):
        for error in fields(Errors):
            key = (account.job, error.name)
            worst[key] = max(worst.get(key, 0), getattr(account, error.name))
    for seen in _of(ReadersEvent, events):
        worst[seen.job, "torn"] = max(worst.get((seen.job, "torn"), 0), seen.torn)
    totals = dict.fromkeys((error.name for error in fields(Errors)), 0)
    for (_, name), count in worst.items():
        totals[name] += count
    return Errors(**totals)


def _kind(kind: str, faults: Iterable[FaultTimes]) -> FaultKindSummary:
    those = [fault for fault in faults if fault.kind == kind]
    return FaultKindSummary(count=len(those), recover_s=_percentiles(those))


def _percentiles(faults: Iterable[FaultTimes]) -> Percentiles:
    seconds = [fault.recovered_s for fault in faults if fault.recovered_s is not None]
    if not seconds:
        return Percentiles(None, None)
    p50, p95 = np.percentile(seconds, (50, 95), method="inverted_cdf")
    return Percentiles(float(p50), float(p95))


def _sentence(verdict: Verdict, faults: int, findings: str, recover_s: Percentiles, reasons: tuple[str, ...]) -> str:
    what = f"{faults} fault{'' if faults == 1 else 's'}, " if faults else ""
    recovery = "" if recover_s.p95 is None else f"; 95 of 100 recoveries took at most {recover_s.p95:.1f} s"
    more = f" And {len(reasons) - 1} more." if len(reasons) > 1 else ""
    reason = f" {reasons[0]}{more}" if reasons else ""
    return f"{verdict}: {what}{findings}{recovery}.{reason}"


def _in_words(errors: Errors, events: Sequence[Event]) -> str:
    """Say what was counted; a drill without an account knows of no row, and has only checks to tell of."""
    if not _of(AccountEvent, events):
        checks = _of(CheckEvent, events)
        return f"{sum(check.passed for check in checks)} of {len(checks)} checks passed" if checks else "no row counted"
    return (
        f"{errors.lost} rows lost, {errors.duplicated} duplicated, {errors.unexpected} unexpected, "
        f"{errors.out_of_order} out of order, {errors.torn} torn batches"
    )
