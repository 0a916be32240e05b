"""The README and docs/ work for a reader who goes through them in order, on one Pulsar, in one folder."""

from __future__ import annotations

import time
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
SQL = """
from contextlib import redirect_stdout
from pyspark.sql import SparkSession
with open("shown", "w") as shown, redirect_stdout(shown):
    for statement in {statements!r}:
        result = SparkSession.builder.getOrCreate().sql(statement)
        if result.columns:
            result.show(truncate=False)
"""
"""Runs statements of SQL and keeps what `show` prints of those that have a result."""


def run_sql(reader: Reader, text: str) -> str:
    """Run the statements of a block; return what Spark shows of them."""
    reader.python(SQL.format(statements=[one for one in text.split(";") if one.strip()]))
    return (reader.home / "shown").read_text().rstrip("\n") + "\n"


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    one = Reader(home_of_a_reader(tmp_path, monkeypatch))
    yield one
    one.end()


@pytest.mark.timeout(3600)
def test_the_pages_work_in_order(reader: Reader) -> None:
    shown = None
    began = time.monotonic()
    for place, language, text in blocks(PAGES):
        print(f"{time.monotonic() - began:6.1f} s: {place}")  # pytest shows it where something fails, and with -s
        if shown is not None:
            assert (language, text) == ("text", shown), f"{place} must have what Spark shows of the SQL before"
        shown = run_sql(reader, text) if language == "sql" else None
        if language == "python":
            reader.python(text)
        elif language == "sh":
            for line in text.splitlines():
                reader.shell(line)
        else:
            assert language in (*SHOWN, "sql"), place
