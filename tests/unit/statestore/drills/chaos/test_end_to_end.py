"""The job from topic to topic, with readers, writers and a judge that only pretend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from statestore.drills.chaos import end_to_end
from statestore.drills.chaos.end_to_end import COPIES, EndToEnd
from statestore.drills.chaos.job import JobSpec
from statestore.drills.journal import AccountEvent
from statestore.drills.judge import findings
from statestore.drills.judge.findings import Verdict
from statestore.drills.judge.oracle import ReadProgress

SPEC = JobSpec(COPIES, False, "output", "sink", "checkpoint", source="input")


class Pretended:
    """All that is pretended, and what was asked of it, in its order."""

    promised, blocks = 700, ()

    def __init__(self, fails: bool = False) -> None:
        self.lines: list[str] = []
        self.seen = {"input": 0, "output": 0}
        self._fails = fails

    def readers(self, url: str, topic: str, *_: object, acknowledge: bool) -> Any:
        pretended = self

        class Readers:
            @property
            def progress(self) -> ReadProgress:
                return ReadProgress(pretended.seen[topic])

            def __enter__(self) -> None:
                pretended.lines.append(f"read {topic}")

            def __exit__(self, *_: object) -> None:
                pretended.lines.append(f"leave {topic}")

        return Readers()

    def to(self, url: str, topic: str, log: Path, scratch: Path) -> Pretended:
        self.lines.append(f"write {topic}")
        if self._fails:
            raise RuntimeError("no JDK")
        return self

    def __getattr__(self, word: str) -> Callable[..., None]:
        return lambda *_: self.lines.append(word)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    made = Pretended()
    monkeypatch.setattr(end_to_end, "LiveReaders", made.readers)
    monkeypatch.setattr(end_to_end, "Traffic", made)
    monkeypatch.setattr(end_to_end, "end_later_transactions", lambda url, topic: made.lines.append(f"end on {topic}"))
    return made


def test_both_ends_are_read_before_anything_is_written_and_as_long(pretended: Pretended) -> None:
    with EndToEnd("pulsar://h:1", SPEC, Path("log"), Path("scratch")) as ends:
        pretended.seen |= {"input": 7, "output": 5}
        assert (ends.given, ends.arrived) == (7, 5)
        ends.pause()
        ends.resume()
    assert pretended.lines == [
        "read input",
        "read output",
        "write input",
        "pause",
        "resume",
        "kill",
        "leave output",
        "leave input",
    ]


def test_when_nothing_can_be_written_no_reader_is_left(pretended: Pretended) -> None:
    pretended._fails = True
    with pytest.raises(RuntimeError, match="no JDK"), EndToEnd("pulsar://h:1", SPEC, Path("log"), Path("scratch")):
        pass
    assert pretended.lines[-2:] == ["leave output", "leave input"]


def test_the_job_may_stop_when_all_that_was_promised_was_read_and_all_that_was_read_is_copied(
    pretended: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[bool] = []

    class Supervisor:
        def wait(self, true: Callable[[], bool], what: str, timeout_s: float) -> None:
            for given, arrived in ((690, 690), (700, 699), (705, 700), (705, 705)):
                pretended.seen |= {"input": given, "output": arrived}
                done.append(true())
            pretended.seen["output"] = 3
            done.append(true())
            clock = SimpleNamespace(monotonic=lambda: float("inf"))
            monkeypatch.setattr("statestore.drills.chaos.end_to_end.time", clock)
            done.append(true())

    supervisor: Any = Supervisor()
    with EndToEnd("pulsar://h:1", SPEC, Path("log"), Path("scratch")) as ends:
        ends.drain(supervisor)
    assert done == [False, False, False, True, False, True], "in the end it is for the account to say what is missing"
    assert pretended.lines[3:5] == ["stop", "end on input"]


def test_the_account_is_the_judges(pretended: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings.Account(COPIES, 9, 8, 7, 1, 0, 0, 0, 0, None, {}, Verdict.FAIL, "one is lost")
    monkeypatch.setattr("statestore.drills.judge.oracle.judge_copies", lambda *_: found)
    with EndToEnd("pulsar://h:1", SPEC, Path("log"), Path("scratch")) as ends:
        account = ends.account()
    assert isinstance(account, AccountEvent)
    assert (account.lost, account.verdict, account.reason) == (1, Verdict.FAIL, "one is lost")
