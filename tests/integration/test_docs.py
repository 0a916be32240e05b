"""The README and docs/ work for a reader who goes through them in order, on one Pulsar, in one folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page_reader import ROOT, Reader, blocks, home_of_a_reader
from tools.count_words import path

# `up` leaves its process running on purpose; here it is called within a process that goes on.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

FIRST = path()
OTHERS = sorted(page for page in (ROOT / "docs").rglob("*.md") if page not in FIRST)
PAGES = [*FIRST, *(page for page in OTHERS if page.parent.name != "tutorials"), ROOT / "CONTRIBUTING.md"]
"""All pages but the tutorials after the first, which test_tutorials.py works through."""
SHOWN = ("mermaid", "text")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    one = Reader(home_of_a_reader(tmp_path, monkeypatch))
    yield one
    one.end()


@pytest.mark.timeout(3600)
def test_the_pages_work_in_order(reader: Reader) -> None:
    for place, language, text in blocks(PAGES):
        print(place)  # pytest shows it where something fails
        if language == "python":
            reader.python(text)
        elif language == "sh":
            for line in text.splitlines():
                reader.shell(line)
        else:
            assert language in SHOWN, place
