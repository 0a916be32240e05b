"""The report of each kind of journal: what it says, that it can be trusted to show, and that it needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from statestore.cli.app import typer_app
from statestore.drills.chaos.plan import KINDS as ALL_KINDS
from statestore.drills.journal import (
    AccountEvent,
    Began,
    CaughtUp,
    CheckEvent,
    Detected,
    Ended,
    Event,
    Fault,
    JobEvent,
    ReadersEvent,
    Recovered,
    Sample,
    Targets,
)
from statestore.drills.judge.findings import Verdict
from statestore.drills.report.report import page as page_data
from statestore.drills.report.report import render, write_report
from statestore.drills.report.summary import DrillReport, summarize
from statestore.errors import InvalidInput, NotFound
from tests.unit.statestore.drills import journals
from tests.unit.statestore.drills.report.page import Page

KINDS = [kind for kind in ALL_KINDS if kind.runs != "standalone"]

JOURNALS: dict[str, Callable[[], list[Event]]] = {
    "chaos": lambda: journals.chaos(2 * len(KINDS)),
    "failed": journals.failed,
    "unknown": journals.unknown,
    "interrupted": journals.interrupted,
    "rehearsal": journals.rehearsal,
    "endless": journals.endless,
    "just begun": lambda: [journals.began()],
}
HOSTILE = """<script>alert("x")</script>'"><img src=x onerror=alert(1)>{{ 7 * 7 }}</style>&amp;"""


def page_of(events: list[Event]) -> Page:
    return Page(render(summarize(events)))


@pytest.fixture(scope="module")
def report() -> DrillReport:
    """Of a whole drill, with 150 faults."""
    return summarize(journals.chaos())


@pytest.fixture(scope="module")
def passed(report: DrillReport) -> Page:
    return Page(render(report))


@pytest.fixture(scope="module", params=JOURNALS)
def any_page(request: pytest.FixtureRequest) -> Page:
    return page_of(JOURNALS[request.param]())


def titles(page: Page) -> list[str]:
    return [str(attributes["id"]) for attributes in page.all("section")]


def test_pass(passed: Page, report: DrillReport) -> None:
    assert "✓ PASS 150 faults, 0 rows lost, 0 duplicated" in passed.words
    sections = "accounts recovery timeline course transactions checks limits again"
    assert titles(passed) == sections.split()
    for expected in (
        "Faults done 150 of 150 planned",
        f"Time to recover, p95 {report.summary.recover_s.p95:.1f} s target 30.0 s: ✓ kept",
        "flights ✓ PASS 1,332,800 1,332,800 1,332,800 0 0 0 0 0 no state",
        "flights 480 452 28 9 40 31",
        "delays 450 100 1 41.7 41.7",
        "statestore drill --kills 150 --seed 7",
        "power loss of a whole machine: All parts run on one machine.",
        "BookKeeper 4.17.3",
    ):
        assert expected in passed.words, expected


def test_each_fault_is_in_a_table_of_its_kind(passed: Page) -> None:
    assert len(passed.all("details")) == len(KINDS) + 1, "and one for the checks that held, which are few"
    assert all(kind.name in passed.words for kind in KINDS)
    assert ["open" in details for details in passed.all("details")] == [False] * len(KINDS) + [True]
    assert sum(attributes.get("class") == "phases" for attributes in passed.all("div")) == 150
    assert sum("fault" in str(attributes.get("class")) for attributes in passed.all("rect")) == 150


def test_fail_names_the_first_offenders() -> None:
    page = page_of(journals.failed())
    assert "✗ FAIL" in page.words
    assert "Why FAIL" in page.words
    assert "flights, lost flights 0:1187, flights 2:40311" in page.words
    assert "flights, duplicated flights 1:1188" in page.words
    assert "no process is left ✗ FAIL broker 4711 was still there" in page.words


def test_offenders_of_live_readers_are_named() -> None:
    events = [
        replace(event, torn=1, offenders=("batch 41",)) if isinstance(event, ReadersEvent) else event
        for event in journals.chaos(10)
    ]
    assert "flights, torn, seen by a live reader batch 41" in page_of(events).words


def test_unknown_gives_its_reason() -> None:
    page = page_of(journals.unknown())
    assert "? UNKNOWN" in page.words
    assert "Why UNKNOWN Job delays: The output could not be read to its end" in page.words


def test_an_interrupted_drill_claims_no_zero_that_was_not_counted() -> None:
    page = page_of(journals.interrupted())
    assert "It was interrupted." in page.words
    assert page.words.count("not counted") == 5
    assert "Rows lost not counted" in page.words
    assert "Planned and not done, 25 of 30 faults: " in page.words
    assert "No account was written." in page.words


def test_what_a_reader_that_fell_short_did_not_find_is_not_called_nothing() -> None:
    """It may have read all but the last row of a batch, or all but the second copy of one."""
    short = {name: None for name in ("lost", "duplicated", "unexpected", "out_of_order", "torn")}
    events: list[Event] = []
    for event in journals.chaos(9):
        if isinstance(event, AccountEvent):
            event = replace(event, verdict=Verdict.UNKNOWN, reason="It fell short.", **short)  # type: ignore[arg-type]
        events.append(replace(event, torn=None) if isinstance(event, ReadersEvent) else event)
    page = page_of(events)
    assert page.words.count("not counted") >= 5 + 2 * 5
    assert "Rows lost not counted" in page.words
    assert "0 rows lost" not in page.words
    assert "not all of them to the end: torn batches were not counted" in page.words


def test_counts_of_some_jobs_say_so() -> None:
    page = page_of(
        [event for event in journals.chaos(9) if not (isinstance(event, AccountEvent) and event.job == "delays")]
    )
    assert "Rows lost 0 in 1 of 2 jobs" in page.words


def test_a_journal_without_an_end_is_unknown(tmp_path: Path) -> None:
    whole = journals.lines(journals.chaos(20))
    torn = tmp_path / "drill.jsonl"
    torn.write_text(whole[: len(whole) // 2])
    report = write_report(torn, tmp_path / "a.html", tmp_path / "a.json")
    assert report.summary.verdict == "UNKNOWN"
    assert "The journal has no end." in Page((tmp_path / "a.html").read_text()).words


def test_many_checks_are_folded_but_for_those_that_failed() -> None:
    checks: list[Event] = [CheckEvent(t=n, name=f"check {n}", passed=n != 7) for n in range(30)]
    page = page_of([*journals.rehearsal()[:-1], *checks, journals.rehearsal()[-1]])
    assert ["open" in details for details in page.all("details")] == [False]
    assert re.search("Checks.*check 7 ✗ FAIL.*32 of 33 held.*check 8 ✓ PASS", page.words)


def test_a_drill_that_ended_early_says_why() -> None:
    events = [event for event in journals.chaos(30) if event.t < 200]
    page = page_of([*events, Ended(t=201.0, reason="the time was out, and 22 of 30 faults were not done")])
    assert "It ended early." in page.words
    assert "Why UNKNOWN The drill ended early: the time was out, and 22 of 30 faults were not done." in page.words


def test_phases_are_as_long_as_they_took() -> None:
    events: list[Event] = [
        journals.began(1),
        Fault(t=10, n=1, kind="a", family="b"),
        Detected(t=12, n=1),
        Recovered(t=15, n=1),
        Fault(t=20, n=2, kind="a", family="b"),
        Recovered(t=22, n=2),
        CaughtUp(t=40, n=2),
    ]
    (kind,) = page_data(summarize(events)).kinds
    assert [[(phase.until, phase.seconds, phase.percent) for phase in course.phases] for course in kind.courses] == [
        [("detected", 2, 10), ("recovered", 3, 15)],
        [("recovered", 2, 10), ("caught up", 18, 90)],
    ]
    assert (kind.recovered, kind.longest_s, kind.recovered_s) == (2, 5, (5, 2))


def test_a_fault_without_recovery_is_open_and_marked() -> None:
    events = [event for event in journals.chaos(42) if not (isinstance(event, Recovered) and event.n == 5)]
    page = page_of(events)
    assert ["open" in details for details in page.all("details")].count(True) == 1 + 1
    assert "1 not seen to recover" in page.words
    assert [attributes["class"] for attributes in page.all("rect")].count("fault open") == 1


def test_missed_targets_are_said_in_words() -> None:
    events = journals.chaos(10)
    assert isinstance(events[0], Began)
    events[0] = replace(events[0], targets=Targets(recover_s=0.5, data_at_risk_rows=1))
    page = page_of(events)
    assert "target 0.50 s: ✗ missed" in page.words
    assert "target 1: ✗ missed" in page.words


def test_rehearsal() -> None:
    page = page_of(journals.rehearsal())
    assert titles(page) == ["accounts", "steps", "transactions", "checks", "limits", "again"]
    assert "restore into a scratch location 36.8 s 1.9 GB" in page.words
    assert "4 steps, 75.5 s in all" in page.words
    assert "UNKNOWN" not in page.words
    assert "Rows lost" not in page.words


def test_a_drill_that_has_just_begun_has_a_page() -> None:
    page = page_of([journals.began()])
    assert "No fault was done." in page.words
    assert "Planned and not done, 150 of 150 faults: " in page.words


def test_each_page_is_well_formed(any_page: Page) -> None:
    assert any_page.unbalanced == []
    names = [str(attributes["id"]) for _, attributes in any_page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert {f"#{name}" for name in titles(any_page)} == {attributes["href"] for attributes in any_page.all("a")}


def test_each_page_is_accessible(any_page: Page) -> None:
    assert any_page.headings[0] == 1
    assert any_page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(any_page.headings))
    assert all(attributes.get("scope") in {"col", "row"} for attributes in any_page.all("th"))
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in any_page.all("svg"))
    assert all(
        attributes["tabindex"] == "0" and attributes["aria-label"]
        for attributes in any_page.all("div")
        if attributes.get("class") == "scroll"
    )


def test_each_page_needs_nothing_from_elsewhere(any_page: Page) -> None:
    assert any_page.all("script", "img", "iframe", "object", "embed", "base", "form") == []
    assert [attributes["href"] for attributes in any_page.all("link")] == ["data:,"]
    assert all(str(attributes["href"]).startswith("#") for attributes in any_page.all("a"))
    assert not any("src" in attributes or "srcset" in attributes for _, attributes in any_page.elements)
    assert re.findall(r"@import|url\(|https?://", any_page.html) == []


def hostile(events: list[Event]) -> list[Event]:
    """The same events, with markup in each word that is free text."""
    kept = {"event", "drill", "verdict"}

    def changed(event: Event) -> Event:
        words: dict[str, Any] = {
            each.name: HOSTILE + str(getattr(event, each.name))
            for each in fields(event)
            if each.name not in kept and isinstance(getattr(event, each.name), str)
        }
        return replace(event, **words)

    found = [changed(event) for event in events]
    assert isinstance(found[0], Began)
    found[0] = replace(found[0], versions={HOSTILE: HOSTILE}, machine={HOSTILE: HOSTILE})
    return [
        replace(event, offenders={HOSTILE: (HOSTILE,)})
        if isinstance(event, AccountEvent)
        else replace(event, offenders=(HOSTILE,), torn=1)
        if isinstance(event, ReadersEvent)
        else event
        for event in found
    ]


@pytest.mark.parametrize("name", JOURNALS)
def test_what_comes_from_the_journal_is_text(name: str) -> None:
    plain, attacked = page_of(JOURNALS[name]()), page_of(hostile(JOURNALS[name]()))
    assert {tag for tag, _ in attacked.elements} - {tag for tag, _ in plain.elements} <= {
        "code",
        "dd",
        "dl",
        "dt",
        "h3",
    }
    assert attacked.unbalanced == []
    assert not any("onerror" in attributes for _, attributes in attacked.elements)
    assert HOSTILE in attacked.text
    assert attacked.html.count("<style>") == attacked.html.count("</style>") == 1


def test_no_word_of_an_event_is_forgotten_by_the_attack() -> None:
    """Each kind of event that is in a journal of a whole drill is attacked in some page above."""
    attacked = {event.event for name in ("chaos", "rehearsal") for event in hostile(JOURNALS[name]())}
    assert attacked == {event.event for name in JOURNALS for event in JOURNALS[name]()}
    assert {"step", "not_tested", "check", "fault", "job"} <= attacked


def test_an_hour_with_150_faults_is_a_small_file(passed: Page) -> None:
    assert len(passed.html) < 500_000


def test_the_json_has_what_others_read(tmp_path: Path) -> None:
    events = journals.chaos()
    written = tmp_path / "new" / "report.json"
    write_report(journals.write(tmp_path / "drill.jsonl", events), tmp_path / "new" / "report.html", written)
    found = json.loads(written.read_text())
    summary = found["summary"]
    names = ("verdict", "faults", "lost", "duplicated", "torn")
    assert [summary[name] for name in names] == ["PASS", 150, 0, 0, 0]
    assert 0 < summary["recover_s"]["p50"] <= summary["recover_s"]["p95"] < 30
    assert found["events"] == [journals.to_plain(event) for event in events]
    assert len(found["faults"]) == sum(isinstance(event, Fault) for event in events)
    assert len(found["samples"]) == sum(isinstance(event, Sample) for event in events)
    assert len(found["jobs"]) == sum(isinstance(event, JobEvent) for event in events)


def test_a_report_is_never_written_over_its_journal(tmp_path: Path) -> None:
    journal = journals.write(tmp_path / "drill.json", journals.rehearsal())
    before = journal.read_text()
    with pytest.raises(InvalidInput, match="over the journal"):
        write_report(journal, tmp_path / "drill.html", tmp_path / "drill.json")
    assert journal.read_text() == before


def test_what_can_not_be_written_or_read_is_said(tmp_path: Path) -> None:
    journal = journals.write(tmp_path / "drill.jsonl", journals.rehearsal())
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInput, match="can't be written"):
        write_report(journal, tmp_path / "folder", tmp_path / "a.json")
    with pytest.raises(NotFound):
        write_report(tmp_path / "none", tmp_path / "a.html", tmp_path / "a.json")
    journal.write_text("{}\n")
    with pytest.raises(InvalidInput, match=r"is not an event of a drill"):
        write_report(journal, tmp_path / "a.html", tmp_path / "a.json")


def test_page_and_numbers_are_two_files(tmp_path: Path) -> None:
    journal = journals.write(tmp_path / "drill.jsonl", journals.rehearsal())
    same = str(tmp_path / "report")
    done = CliRunner().invoke(typer_app, ["drill-report", str(journal), "--html", same, "--json", same])
    assert isinstance(done.exception, InvalidInput)
    assert "Name two files" in str(done.exception)
    assert list(tmp_path.iterdir()) == [journal]


@pytest.mark.parametrize(("name", "code"), [("chaos", 0), ("failed", 1), ("interrupted", 3)])
def test_the_command_writes_beside_the_journal(name: str, code: int, tmp_path: Path) -> None:
    journal = journals.write(tmp_path / "drill.jsonl", JOURNALS[name]())
    done = CliRunner().invoke(typer_app, ["drill-report", str(journal)])
    assert done.exit_code == code, done.output
    assert f"The report: {tmp_path / 'report.html'}" in done.output
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["sentence"] in done.output
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_the_command_writes_where_it_is_told(tmp_path: Path) -> None:
    journal = journals.write(tmp_path / "drill.jsonl", journals.rehearsal())
    page, numbers = tmp_path / "x" / "page.html", tmp_path / "y" / "numbers.json"
    done = CliRunner().invoke(typer_app, ["drill-report", str(journal), "--html", str(page), "--json", str(numbers)])
    assert done.exit_code == 0, done.output
    assert page.exists()
    assert numbers.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drill.jsonl", "x", "y"]
