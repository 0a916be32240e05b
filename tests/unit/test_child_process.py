"""A child of a test is waited for, shows its log where it fails, and leaves no process. What it wrote is read whole."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from statestore.drills.judge.accounting import Reading
from statestore.drills.processes import lives
from tests.child_process import ChildProcess, python
from tests.crash import process
from tests.waiting import until

FAMILY = """
import os, subprocess, sys
below = "import os, time; os.setpgid(0, 0); print(os.getpid(), flush=True); time.sleep(300)"
subprocess.Popen([sys.executable, "-c", below]).wait()
"""
"""A process whose child has a process group of its own, as Spark's Python workers have."""
SAYS = "import sys; print(input()); print('why', file=sys.stderr); sys.exit(int(sys.argv[1]))"


def family(folder: Path) -> tuple[ChildProcess, psutil.Process]:
    """A process and its child."""
    child = ChildProcess([sys.executable, "-c", FAMILY], folder / "log")
    return child, psutil.Process(int(child.until(lambda: child.output.strip())))


def test_a_kill_leaves_nothing_also_of_other_process_groups(tmp_path: Path) -> None:
    child, worker = family(tmp_path)
    with child:
        assert child.family() == [child.pid, worker.pid]
    assert not child.alive
    assert not lives(worker)
    assert child.wait() == -signal.SIGKILL
    child.kill()


def test_what_is_paused_goes_on_or_is_killed(tmp_path: Path) -> None:
    child, worker = family(tmp_path)
    with child:
        child.pause()
        assert [psutil.Process(pid).status() for pid in child.family()] == [psutil.STATUS_STOPPED] * 2
        child.resume()
        until(lambda: worker.status() == psutil.STATUS_SLEEPING)
        child.pause()
    assert not lives(worker)


def test_a_failure_shows_output_and_log(tmp_path: Path) -> None:
    with ChildProcess([sys.executable, "-c", SAYS, "7"], tmp_path / "log", takes_input=True) as child:
        with pytest.raises(AssertionError, match="not yet:"):
            child.until(lambda: False, "not yet", patience_s=0)
        child.stdin.write("what\n")
        child.stdin.flush()
        with pytest.raises(AssertionError, match=r"(?s)ended with 7:.*what.*why"):
            child.finish()
        with pytest.raises(AssertionError, match=r"(?s)ended with 7:.*what.*why"):
            child.until(lambda: True)
    with (
        ChildProcess([sys.executable, "-c", "input()"], tmp_path / "log", takes_input=True) as other,
        pytest.raises(AssertionError, match="did not end within 0 s"),
    ):
        other.wait(0)
    assert (child.log.name, other.log.name) == ("log", "log-2")
    assert (child.output, other.output) == ("what\n", "")


@dataclass
class Task:
    rows: int


def test_a_module_gets_its_arguments_and_its_last_line_is_its_answer(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("import sys, tests; print('first'); print(sys.argv[2])")
    command = python("module", "word", Task(5), {"a": "b"})
    assert [json.loads(text) for text in command[-2:]] == [{"rows": 5}, {"a": "b"}]
    assert ChildProcess(command, tmp_path / "log").answer() == {"rows": 5}


def test_a_topic_that_is_not_read_to_its_end_has_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "end_later_transactions", lambda *_: None)
    monkeypatch.setattr(process, "read_all", lambda *_: Reading("the last reader", shortfall="A transaction is open"))
    with pytest.raises(AssertionError, match="A transaction is open"):
        process.account_for("pulsar://localhost", "rows", 2, 10)
