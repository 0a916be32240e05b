from __future__ import annotations

import json

import pytest

from statestore.drills.journal import (
    AccountEvent,
    Began,
    CaughtUp,
    CheckEvent,
    Detected,
    DrillKind,
    Ended,
    Event,
    Fault,
    FencedEvent,
    JobEvent,
    NotTested,
    PlannedFault,
    ReadersEvent,
    Recovered,
    Sample,
    StateEvent,
    StepEvent,
    Targets,
    TransactionsEvent,
)
from statestore.drills.judge.findings import Verdict
from statestore.drills.report.summary import DrillReport, summarize
from statestore.errors import InvalidInput

KIND = "kill-driver"


def began(faults: int = 0, drill: DrillKind = "chaos") -> Began:
    return Began(
        drill=drill,
        at="2026-11-21T20:00:00+00:00",
        rerun="statestore drill --seed 7",
        seed=7,
        targets=Targets(recover_s=10, data_at_risk_rows=50),
        plan=tuple(PlannedFault(n, KIND, "driver") for n in range(1, faults + 1)),
    )


def account(
    job: str = "rows",
    verdict: Verdict = Verdict.PASS,
    *,
    lost: int | None = 0,
    duplicated: int = 0,
    torn: int | None = 0,
) -> AccountEvent:
    return AccountEvent(
        job,
        attempted=9,
        committed=9,
        found=9,
        lost=lost,
        duplicated=duplicated,
        unexpected=0,
        out_of_order=0,
        torn=torn,
        state_equal=None,
        offenders={},
        verdict=verdict,
        reason="Why.",
    )


def fault(n: int, at: float, recovered_after: float | None, kind: str = KIND) -> list[Event]:
    events: list[Event] = [Fault(n, kind, "driver", t=at)]
    return events if recovered_after is None else [*events, Recovered(n, t=at + recovered_after)]


JOB = JobEvent("rows", stateful=False, topic="t", checkpoint="c")
GOOD: list[Event] = [began(2), JOB, *fault(1, 10, 4), *fault(2, 20, 8), account(), Ended(t=30)]


def reasons(report: DrillReport) -> str:
    return " | ".join(report.summary.reasons)


def test_all_done_all_recovered_all_accounted_for_is_a_pass() -> None:
    summary = summarize(GOOD).summary
    assert (summary.verdict, summary.reasons, summary.faults, summary.seed) == (Verdict.PASS, (), 2, 7)
    assert summary.sentence == (
        "PASS: 2 faults, 0 rows lost, 0 duplicated, 0 unexpected, 0 out of order, 0 torn batches; "
        "95 of 100 recoveries took at most 8.0 s."
    )
    assert summary.rerun == "statestore drill --seed 7"


@pytest.mark.parametrize(
    ("left_out", "reason"),
    [
        (Ended, "no end"),
        (Fault, "Fault 1 (kill-driver) was planned and not done."),
        (Recovered, "No batch was seen to be committed after fault 2 (kill-driver)."),
        (AccountEvent, "Job rows has no account."),
    ],
)
def test_missing_evidence_is_unknown(left_out: type, reason: str) -> None:
    report = summarize([event for event in GOOD if not isinstance(event, left_out)])
    assert report.summary.verdict is Verdict.UNKNOWN
    assert reason in reasons(report)


def test_an_interrupted_drill_is_unknown_and_says_so() -> None:
    report = summarize([*GOOD[:-1], Ended(interrupted=True, reason="Ctrl-C")])
    assert report.summary.verdict is Verdict.UNKNOWN
    assert report.summary.sentence.endswith("The drill was interrupted: Ctrl-C.")


def test_a_drill_that_could_not_go_on_is_unknown_and_says_why() -> None:
    report = summarize([*GOOD[:-1], Ended(interrupted=False, reason="No broker answers.")])
    assert (report.summary.verdict, reasons(report)) == (Verdict.UNKNOWN, "The drill ended early: No broker answers.")


def test_without_an_account_no_zero_is_claimed() -> None:
    report = summarize([began(), JOB, ReadersEvent("rows", 3, 0), Ended(interrupted=True)])
    assert "UNKNOWN: no row counted. The drill was interrupted: no reason is known." in report.summary.sentence


def test_what_was_not_counted_in_a_job_is_no_zero() -> None:
    short: list[Event] = [
        account("a", lost=2),
        account("b", Verdict.UNKNOWN, lost=None, torn=None),
        ReadersEvent("a", 2, 0),
    ]
    summary = summarize([began(), *short, ReadersEvent("b", 2, 0), Ended()]).summary
    assert (summary.lost, summary.torn, summary.unexpected) == (2, 0, 0)
    assert summary.counted_in == {"lost": 1, "duplicated": 2, "torn": 1, "unexpected": 2, "out_of_order": 2}
    assert "2 rows lost in 1 of 2 jobs, 0 duplicated, 0 unexpected, 0 out of order, 0 torn" in summary.sentence
    summary = summarize([began(), *short[1:2], ReadersEvent("b", 2, None), Ended()]).summary
    assert (summary.lost, summary.torn, summary.duplicated) == (None, None, 0)
    assert "0 duplicated, 0 unexpected, 0 out of order (not counted: rows lost, torn batches)" in summary.sentence


@pytest.mark.parametrize(("readers", "torn"), [(ReadersEvent("rows", 3, 2), 2), (ReadersEvent("rows", 3, 0), None)])
def test_without_an_account_readers_prove_torn_batches_and_not_that_there_are_none(
    readers: ReadersEvent, torn: int | None
) -> None:
    assert summarize([began(), JOB, readers, Ended(interrupted=True)]).summary.torn == torn


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (account(verdict=Verdict.FAIL, lost=1), "Job rows: Why."),
        (CheckEvent("damage is refused", passed=False, detail="It was used."), "damage is refused. It was used."),
        (ReadersEvent("rows", 3, torn=1, offenders=("batch 4",)), "saw 1 torn batches while it ran: batch 4."),
    ],
)
def test_a_thing_that_is_wrong_fails_the_drill_even_if_it_was_interrupted(bad: Event, reason: str) -> None:
    report = summarize([*GOOD[:-1], bad, Ended(interrupted=True)])
    assert report.summary.verdict is Verdict.FAIL
    assert reason in reasons(report)
    assert "interrupted" in reasons(report)


def test_an_account_that_knows_nothing_makes_the_drill_unknown() -> None:
    report = summarize([*GOOD[:-1], account("other", Verdict.UNKNOWN), Ended()])
    assert (report.summary.verdict, reasons(report)) == (Verdict.UNKNOWN, "Job other: Why.")


def test_errors_add_up_over_jobs_and_the_worst_account_of_a_job_counts() -> None:
    fail = Verdict.FAIL
    accounts = [
        account("a", fail, lost=3, torn=1),
        account("a", fail, lost=2, duplicated=1),
        account("b", fail, lost=1),
    ]
    summary = summarize([began(), *accounts, ReadersEvent("a", 2, torn=2, offenders=("1", "2")), Ended()]).summary
    assert (summary.lost, summary.duplicated, summary.torn) == (4, 1, 2)
    assert (summary.unexpected, summary.out_of_order) == (0, 0)


def test_times_are_counted_from_the_fault_and_the_first_sight_counts() -> None:
    seen: list[Event] = [
        Detected(1, t=11),
        FencedEvent(1, t=12.5),
        Recovered(1, t=14),
        Recovered(1, t=19),
        CaughtUp(1, t=16),
    ]
    (times,) = summarize([began(), Fault(1, KIND, "driver", "pid 7", t=10), *seen, Ended()]).faults
    assert (times.t, times.detected_s, times.fenced_s, times.recovered_s, times.caught_up_s) == (10, 1, 2.5, 4, 6)
    assert (times.kind, times.family, times.detail) == (KIND, "driver", "pid 7")


def test_percentiles_are_times_that_were_seen_for_each_kind_and_for_all() -> None:
    events = [one for n in range(1, 21) for one in fault(n, 100 * n, n, "cut" if n > 10 else KIND)]
    summary = summarize([began(), *events, *fault(21, 1, None, "cut"), Ended()]).summary
    assert (summary.recover_s.p50, summary.recover_s.p95) == (10, 19)
    assert {kind: one.count for kind, one in summary.by_kind.items()} == {KIND: 10, "cut": 11}
    assert (summary.by_kind["cut"].recover_s.p50, summary.by_kind["cut"].recover_s.p95) == (15, 20)


@pytest.mark.parametrize(
    ("open_faults", "waited", "kept"),
    [
        (1, 5, {"recover_s": True}),  # 95 of 100 are in time, whatever becomes of the other one
        (2, 5, {}),
        (2, 10.1, {"recover_s": False}),
    ],
)
def test_a_fault_without_a_recovery_counts_as_long_as_it_has_lasted(
    open_faults: int, waited: float, kept: dict[str, bool]
) -> None:
    done = [one for n in range(20 - open_faults) for one in fault(n, n, 1)]
    left = [one for n in range(open_faults) for one in fault(100 + n, 100, None)]
    summary = summarize([began(), *done, *left, Ended(t=100 + waited)]).summary
    assert (summary.recover_s.p95, summary.within_targets) == (1, kept)


def test_without_a_recovery_there_is_no_percentile() -> None:
    summary = summarize([began(), *fault(1, 1, None), Ended()]).summary
    assert (summary.recover_s.p50, summary.recover_s.p95, summary.within_targets) == (None, None, {})


@pytest.mark.parametrize(("recovered_after", "behind", "kept"), [(10, 50, True), (10.1, 51, False)])
def test_targets_are_compared_with_what_was_measured(recovered_after: float, behind: int, kept: bool) -> None:
    samples = [Sample("rows", 100, 100 - behind), Sample("rows", 200, 199)]
    summary = summarize([began(), *fault(1, 1, recovered_after), *samples, Ended()]).summary
    assert summary.data_at_risk_rows == behind
    assert summary.within_targets == {"recover_s": kept, "data_at_risk_rows": kept}


def test_a_drill_of_checks_alone_passes_by_its_checks() -> None:
    report = summarize(
        [began(drill="rehearsal"), JOB, CheckEvent("opens", passed=True), StepEvent("open", 1.5), Ended()]
    )
    assert report.summary.sentence == "PASS: 1 of 1 checks passed."
    assert [step.name for step in report.steps] == ["open"]


def test_a_drill_that_looked_at_nothing_is_unknown() -> None:
    report = summarize([began(drill="rehearsal"), Ended()])
    assert (report.summary.verdict, reasons(report)) == (Verdict.UNKNOWN, "Nothing was accounted for or checked.")


def test_the_json_has_all_that_the_journal_has() -> None:
    more: list[Event] = [
        Sample("rows", 5, 4, 12.5),
        StateEvent("rows", 3, versions=2, restore_mb_s=80.0),
        TransactionsEvent("rows", 5, 4, 1, 1, 2, 3),
        NotTested("power cut", "one machine"),
        ReadersEvent("rows", 3, 0),
    ]
    report = json.loads(summarize([*GOOD[:-1], *more, Ended()]).to_json())
    assert report["summary"]["recover_s"] == {"p50": 4.0, "p95": 8.0}
    assert report["summary"]["by_kind"][KIND] == {"count": 2, "recover_s": {"p50": 4.0, "p95": 8.0}}
    assert report["began"]["seed"] == 7
    assert [event["event"] for event in report["events"]][-6:-1] == [one.event for one in more]
    assert (len(report["samples"]), len(report["transactions"]), len(report["not_tested"])) == (1, 1, 1)
    (job,) = report["jobs"]
    assert (job["job"], job["account"]["verdict"], job["readers"]["readers"]) == ("rows", "PASS", 3)
    assert [one["recovered_s"] for one in report["faults"]] == [4.0, 8.0]
    assert report["states"][0]["restore_mb_s"] == 80.0


def test_events_without_a_beginning_are_no_drill() -> None:
    wrong: list[list[Event]] = [[], [Ended()], [Ended(), began()]]
    for events in wrong:
        with pytest.raises(InvalidInput, match="began"):
            summarize(events)
