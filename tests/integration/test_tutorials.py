"""The tutorials work from an empty folder, and what they say that a reader sees is what a reader sees."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.child_process import ChildProcess
from tests.page_reader import COMMANDS, ROOT, Reader, assert_exists, assert_shown, blocks, home_of_a_reader
from tests.spark_session import quick_start

TUTORIALS = sorted(page for page in (ROOT / "docs" / "tutorials").glob("*.md") if page.name != "quick-start.md")
"""The quick start is on the path that test_docs.py works through."""
SAVED = re.compile(r"# (\w+\.py)\n")
STARTED = re.compile(r"python (\w+\.py) >>? (\S+) 2>&1 &")
FOLLOWED = ("kill", "python", "sleep")
"""Programs that Follower carries out in its own way."""


@dataclass
class Follower(Reader):
    """A reader who carries out each command, starts jobs and kills them.

    Attributes:
        said: what the last block printed.
        jobs: the processes that were started.
        committed: the newest committed batch when the last job was started, by sink.
    """

    said: str = ""
    jobs: list[ChildProcess] = field(default_factory=list)
    committed: dict[str, int] = field(default_factory=dict)

    def follow(self, language: str, text: str) -> None:
        """Do what a block says, or see that the last one has printed what this one shows."""
        if language == "text":
            assert_shown(text, self.said)
        elif saved := SAVED.match(text):
            (self.home / saved[1]).write_text(self.here(text))
        elif language == "python":
            self.said = self.python(text)
        elif language == "sh":
            self.said = "".join(map(self.carry_out, text.splitlines()))
        else:
            assert language == "diff", language

    def carry_out(self, line: str) -> str:
        """Carry out a line of a shell. Returns what it printed."""
        words = shlex.split(line, comments=True)
        if not words or words[0] == "sleep":  # kill waits until there is something to see
            return ""
        if started := STARTED.fullmatch(line):
            self.start(started[1], started[2])
        elif words[0] == "kill":
            self.kill()
        else:
            return self.shell(line)
        return ""

    def start(self, script: str, log: str) -> None:
        """Start a job."""
        self.committed = {one["name"]: self.newest(one) for one in self.sinks()}
        self.jobs.append(ChildProcess([sys.executable, script], self.home / log, quick_start()))

    def kill(self) -> None:
        """Kill the job in the middle of a batch, once it has committed another one."""

        def in_a_batch() -> bool:
            return any(
                one["unfinished"] and self.newest(one) > self.committed.get(one["name"], -1) for one in self.sinks()
            )

        self.jobs[-1].until(in_a_batch, "no batch was committed")
        self.jobs[-1].kill()

    def sinks(self) -> list[dict[str, Any]]:
        """The output of `eos sink list`."""
        done = CliRunner().invoke(COMMANDS["eos"], ["sink", "list", "--json"], env=self.env())
        found: list[dict[str, Any]] = json.loads(done.stdout) if done.exit_code == 0 else []
        return found

    def newest(self, sink: dict[str, Any]) -> int:
        """The newest committed batch of a sink, -1 where there is none."""
        batch = sink["batch_id"]
        return -1 if batch is None else int(batch)

    def end(self) -> None:
        """End each job too."""
        for job in self.jobs:
            job.kill()
        super().end()


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    one = Follower(home_of_a_reader(tmp_path, monkeypatch))
    yield one
    one.end()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_it_says(page: Path, follower: Follower) -> None:
    for place, language, text in blocks([page]):
        print(place)
        follower.follow(language, text)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_and_the_code_of_a_tutorial_are_right(page: Path) -> None:
    for place, language, text in blocks([page]):
        if language == "python":
            compile(text, place, "exec")
        elif language == "sh":
            for line in text.splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0] in COMMANDS:
                    assert_exists(words)


def test_what_a_page_shows_is_held_against_what_came() -> None:
    said = "┃ number ┃ record ┃\n│ 17 │ owner │\n│ 18 │ intent │\n5 records.\n"
    assert_shown("┃ number ┃ record ┃\n│ 1 │ owner │\n…\n2 records.\n", said)
    for wrong in ("│ 1 │ marker │\n", "2 records.\n│ 1 │ owner │\n", "2 rows.\n"):
        with pytest.raises(AssertionError, match="did not come"):
            assert_shown(wrong, said)
