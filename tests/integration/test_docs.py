"""The README and docs/ work for a reader who goes through them in order, on one Pulsar, in one folder."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_tutorials import FOLLOWED, TUTORIALS
from tests.page_reader import ROOT, Reader, assert_shown, blocks, home_of_a_reader, unread
from tests.page_world import BEFORE
from tools.count_words import path

# `up` leaves its process running on purpose; here it is called within a process that goes on.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

FIRST = path()
LAST = [ROOT / "docs" / "how-to" / "runbook.md"]
"""It begins with the sinks of the other pages, and with dead drivers, whose readers would wait on the others."""
OTHERS = sorted(page for page in (ROOT / "docs").rglob("*.md") if page not in (*FIRST, *LAST))
PAGES = [*FIRST, *(page for page in OTHERS if page.parent.name != "tutorials"), ROOT / "CONTRIBUTING.md", *LAST]
"""All pages but the tutorials after the first, which test_tutorials.py works through."""
VERBS = ["cp", "diff", "drill", "du", "gc", "ls", "orphans", "rescale", "restore", "savepoint", "snapshots", "verify"]
LOOKED_UP = {
    "pip install": "What it would install is there already, and this project is the tree that is tested.",
    "make ": "Each target takes minutes or hours.",
    "eos local up --cluster": "The six processes take a minute to start: test_local_cluster.py starts them.",
    "eos local kill": "It needs the cluster: test_local_cluster.py.",
    "eos local restart": "It needs the cluster: test_local_cluster.py.",
    "eos local pause": "It needs the cluster: test_local_cluster.py.",
    "eos local down --name trial": "It needs the cluster: test_local_cluster.py.",
    **{f"statestore {verb}": "It starts a JVM: make soak does it, here or in test_commands_end.py." for verb in VERBS},
}
"""Beginnings of the commands that are only looked up, and why. All others are carried out."""
CODES = {
    # The topic orders-out does not exist.
    "eos doctor --preflight --sink orders --admin-url http://localhost:8080 orders-out": (1,),
    # The checkpoint's last batch is in doubt.
    "eos sink adopt /data/flights/checkpoint --topic public/default/flights --sink flights"
    " --admin-url http://localhost:8080": (3,),
    # The sink "routes" is unreadable.
    "eos sink list --namespace public/default --admin-url http://localhost:8080": (1,),
    # Drivers are dead, and their transactions are open.
    "eos doctor --namespace public/default --admin-url http://localhost:8080": (1,),
    # On a machine that is so slow that the transaction has been open for a minute the reader is held up.
    "eos doctor --heal persistent://public/default/flights --admin-url http://localhost:8080": (0, 1),
}
"""The exit codes of the commands that do not end with 0."""
SHOWN = {
    "docs/how-to/runbook.md, block 5": "eos sink list --namespace public/default --admin-url http://localhost:8080",
    "docs/how-to/runbook.md, block 6": "eos sink show flights --last 4",
    "docs/how-to/runbook.md, block 7": "eos sink verify flights",
}
"""The blocks that show what a command of their page prints."""
STATE_PAGES = [
    ROOT / "docs" / "how-to" / f"{name}.md"
    for name in ("state-on-bookkeeper", "savepoints", "rescale-and-bootstrap", "verify-and-repair")
]
STATE_LOOKED_UP = {
    "statestore savepoint every": "It goes on until someone ends it.",
    "statestore restore before-upgrade bk://localhost:2181/queries/counts-2 --in-step": "It needs a job of the reader.",
    "statestore rescale bk://": "Its query may have been stopped in the middle of a batch, which rescale refuses.",
}
"""Beginnings of those commands of STATE_PAGES that are only looked up, and why."""
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
    one = Reader(home_of_a_reader(tmp_path, monkeypatch), LOOKED_UP, CODES)
    yield one
    one.end()


def work_through(reader: Reader, pages: list[Path]) -> None:
    """Do what the blocks of pages say, in order."""
    shown = None
    said: dict[str, str] = {}
    began = time.monotonic()
    for place, language, text in blocks(pages):
        if place in BEFORE:
            BEFORE[place](reader)
        print(f"{time.monotonic() - began:6.1f} s: {place}")  # pytest shows it where something fails, and with -s
        if shown is not None:
            assert (language, text) == ("text", shown), f"{place} must have what Spark shows of the SQL before"
        shown = run_sql(reader, text) if language == "sql" else None
        if language == "python":
            reader.python(text)
        elif language == "sh":
            for line in text.splitlines():
                said[line] = reader.shell(line)
        elif place in SHOWN:
            assert_shown(text, said[SHOWN[place]])
        else:
            assert language in ("mermaid", "text", "sql"), place


def test_each_block_is_carried_out_or_listed() -> None:
    pages = {*(ROOT / "docs").rglob("*.md"), *PAGES}
    assert pages == {*PAGES, *TUTORIALS}
    assert [one for page in PAGES for one in unread(page.name, page.read_text(), LOOKED_UP)] == []
    assert [one for page in TUTORIALS for one in unread(page.name, page.read_text(), (), FOLLOWED)] == []


@pytest.mark.parametrize(
    "text",
    [
        "    ```sh\n    eos sink list\n    ```\n",
        "```sh title=list\neos sink list\n```\n",
        "~~~sh\neos sink list\n~~~\n",
        "```bash\neos sink list\n```\n",
        "```\neos sink list\n```\n",
        "```text\neos sink list\n```\n",
        "```sh\neos sink list\ncurl localhost:8080\n```\n",
    ],
)
def test_a_block_that_is_neither_is_found(text: str) -> None:
    assert len(list(unread("page", text, LOOKED_UP))) == 1
    assert list(unread("page", "```sh\npip install x  # ours\neos sink list\n```\n", LOOKED_UP)) == []


def test_each_exception_is_of_a_block_that_is_there() -> None:
    places = [place for place, _, _ in blocks(PAGES)]
    shells = [text for _, language, text in blocks(PAGES) if language == "sh"]
    lines = [" ".join(shlex.split(line, comments=True)) for text in shells for line in text.splitlines()]
    assert [
        start for start in (*LOOKED_UP, *STATE_LOOKED_UP) if not any(line.startswith(start) for line in lines)
    ] == []
    assert CODES.keys() | set(SHOWN.values()) <= set(lines)
    assert SHOWN.keys() | BEFORE.keys() <= set(places)


def test_a_command_must_end_as_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EOS_CACHE", str(tmp_path))
    refused = "eos doctor --sink orders"
    one = Reader(tmp_path, ["eos local up"], {refused: (1,)})
    with pytest.raises(AssertionError, match=r"sink', 'show'\]: 2, SystemExit\(2\)"):
        one.shell("eos sink show  # which one?")
    with pytest.raises(AssertionError, match="1, InvalidInput"):  # it is the runner's code for any error
        one.shell(refused)
    with pytest.raises(AssertionError, match="--no-such"):
        one.shell("eos local up --no-such")
    assert "Exactly-once" in one.shell("eos --help")
    assert one.shell("eos local up --cluster") == ""


@pytest.mark.timeout(3600)
def test_the_pages_work_in_order(reader: Reader) -> None:
    work_through(reader, PAGES)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_commands_of_the_pages_about_state_work(reader: Reader) -> None:
    reader.looked_up = [*(start for start in LOOKED_UP if not start.startswith("statestore")), *STATE_LOOKED_UP]
    for folder in ("file:///backup", "file:///restored"):
        reader.places[folder] = (reader.home / folder.rpartition("/")[2]).as_uri()
    work_through(reader, STATE_PAGES)
