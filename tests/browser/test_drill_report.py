"""The report of a drill in a real browser: on a phone, on a desk and on paper, in light and dark, without a network."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from statestore.drills.chaos.plan import KINDS, Family
from statestore.drills.journal import Event
from statestore.drills.report.report import write_report
from tests.browser.browser import Browser, Scheme
from tests.unit.statestore.drills import journals

pytestmark = pytest.mark.browser

JOURNALS: dict[str, Callable[[], list[Event]]] = {
    "chaos": journals.chaos,
    "failed": journals.failed,
    "unknown": journals.unknown,
    "interrupted": journals.interrupted,
    "rehearsal": journals.rehearsal,
    "endless": journals.endless,
    "just_begun": lambda: [journals.began()],
}
WIDTHS = (375, 768, 1280)
LEAST_LETTERS_PX = 12
LEAST_CONTRAST = 4.5  # WCAG 2, level AA


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    found = {name: folder / f"{name}.html" for name in JOURNALS}
    for name, html in found.items():
        journal = journals.write(folder / f"{name}.jsonl", JOURNALS[name]())
        write_report(journal, html, folder / f"{name}.json")
    return found


@pytest.mark.parametrize("name", JOURNALS)
def test_nothing_is_complained_of_and_nothing_is_fetched(name: str, pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages[name])
    assert browser.complaints() == []
    assert browser.requests() == [pages[name].as_uri()]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", JOURNALS)
def test_all_is_readable_at_each_width(name: str, width: int, pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages[name], width)
    for opened in (False, True):
        browser.run("document.querySelectorAll('details').forEach(e => { e.open = arguments[0]; })", opened)
        assert browser.wide() == []
        assert browser.small(LEAST_LETTERS_PX) == []
        assert browser.covered() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", JOURNALS)
def test_letters_stand_out_in_both_schemes(name: str, scheme: Scheme, pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages[name], scheme=scheme)
    browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert browser.faint(LEAST_CONTRAST) == []
    light = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == (scheme == "light")


@pytest.mark.parametrize("width", WIDTHS)
def test_charts_are_drawn_in_the_room_there_is(width: int, pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages["chaos"], width)
    boxes = browser.run(
        "return [...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect()).map(r => [r.width, r.height])"
    )
    curves = 4
    assert len(boxes) == len(KINDS) + len(Family) + curves
    assert all(box[0] > width / 3 and box[1] > 15 for box in boxes), boxes
    lines = browser.run("return [...document.querySelectorAll('.line')].map(e => e.getTotalLength())")
    assert len(lines) == curves
    assert all(length > 1000 for length in lines), "a curve goes from the left to the right"


def test_sections_are_there_and_links_lead_to_them(pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages["chaos"])
    names = [address.partition("#")[2] for address in browser.run("return [...document.links].map(e => e.href)")]
    assert names == ["accounts", "recovery", "timeline", "course", "transactions", "checks", "limits", "again"]
    for name in names:
        assert browser.run("return document.getElementById(arguments[0]).getBoundingClientRect().height", name) > 40


def test_a_table_with_the_faults_of_a_kind_unfolds(pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages["chaos"], 375)
    seen = "return [...document.querySelectorAll('#timeline table')].filter(e => e.checkVisibility()).length"
    assert browser.run(seen) == 0
    browser.run("document.querySelector('#timeline summary').click()")
    assert browser.run(seen) == 1


@pytest.mark.parametrize("name", JOURNALS)
def test_all_has_a_name_for_those_who_listen(name: str, pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages[name])
    assert browser.nameless() == []


def test_on_paper_all_faults_are_shown(pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages["chaos"], scheme="dark")
    pdf = browser.pdf()
    assert 8 <= len(pdf.pages) <= 16
    printed = " ".join("\n".join(page.extract_text() for page in pdf.pages).split())
    text = unicodedata.normalize("NFKC", printed)  # letters that were set as one, such as in "file"
    assert all(text.count(kind.name) >= 3 for kind in KINDS), "in the chart, the table and the timeline"
    assert text.count("on flights") + text.count("on delays") == 150
    assert all(len(page.extract_text()) > 100 for page in pdf.pages), "no page is empty"


@pytest.mark.parametrize(("name", "most"), [("rehearsal", 2), ("just_begun", 16), ("failed", 9), ("interrupted", 5)])
def test_other_reports_take_few_pages(name: str, most: int, pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages[name])
    assert 1 <= len(browser.pdf().pages) <= most


def test_paper_is_white_in_the_dark_too(pages: dict[str, Path], browser: Browser) -> None:
    browser.open(pages["failed"], scheme="dark", media="print")
    colors = "return ['body', '.verdict'].map(e => getComputedStyle(document.querySelector(e)).backgroundColor)"
    assert browser.run(colors) == ["rgb(255, 255, 255)"] * 2
    assert browser.faint(LEAST_CONTRAST) == []


def test_the_questions_find_what_is_wrong(pages: dict[str, Path], browser: Browser, tmp_path: Path) -> None:
    """The questions above are answered with findings, if there is something to be found."""
    broken = tmp_path / "broken.html"
    wrong = (
        '<div style="width: 3000px">wide</div><p style="font-size: 11px">small</p><p style="color: #999">faint</p>'
        '<div class="x"><span>one</span><span style="margin-left: -1em">two</span></div>'
        '<svg role="img" width="9" height="9"></svg><script src="https://nowhere.invalid/x.js"></script>'
    )
    broken.write_text(pages["rehearsal"].read_text().replace("</main>", f"{wrong}</main>"))
    browser.open(broken)
    assert any("nowhere.invalid" in line for line in browser.complaints())
    assert "https://nowhere.invalid/x.js" in browser.requests()
    assert "the page scrolls sideways" in browser.wide()
    assert browser.small(LEAST_LETTERS_PX) == ['P "small"']
    assert browser.faint(LEAST_CONTRAST) == ['P "faint" 2.8']
    assert browser.covered() == ["one and two"]
    assert browser.nameless() == ["image"]
