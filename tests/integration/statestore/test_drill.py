"""The chaos drill end to end: a short one passes, and one that is interrupted leaves nothing but its report."""

from __future__ import annotations

import json
import os
import signal
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from eos.spark.capabilities import TABLE, Capability
from statestore.drills import journal
from statestore.drills.chaos.plan import make_plan
from statestore.drills.journal import Fault
from tests.child_process import ChildProcess, python
from tests.conftest import VERSION
from tests.traces import traces
from tests.waiting import until

MARK = "EOS_DRILL_OF_TEST"
SHORT = 12
SEED = 212071  # a fault of each family, and three that are aimed at a commit


class Drill(ChildProcess):
    """A drill in a process of its own. Its leftovers are known by a variable that all its processes inherit."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.report = folder / "report"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self._mark = uuid.uuid4().hex
        command = python("statestore.cli.app", "drill", "--pulsar", VERSION, "--report", self.report, *words)
        super().__init__(command, folder / "drill.log", {MARK: self._mark, "TMPDIR": str(self.temporary)})

    def __exit__(self, *_: object) -> None:
        """Let it clean up."""
        if self.alive:
            os.kill(self.pid, signal.SIGTERM)
            self.wait(120)

    def faults(self) -> int:
        path = self.report / "journal.jsonl"
        return sum(isinstance(event, Fault) for event in journal.read(path)) if path.exists() else 0

    def left(self) -> list[str]:
        """The processes that it has left."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline())[:200])
        return found

    def leaves_nothing(self) -> None:
        """No process, once those that were killed are gone, and no folder."""
        until(lambda: not self.left(), self.left, pause_s=0.2)
        assert list(self.temporary.iterdir()) == []

    def result(self) -> dict[str, Any]:
        return dict(json.loads((self.report / "report.json").read_text()))

    def words(self) -> str:
        driver = self.report / "driver.log"
        return self.tail() + (driver.read_text()[-4_000:] if driver.exists() else "")


@pytest.mark.crash
@pytest.mark.needs(TABLE[Capability.READS_STATE])
@pytest.mark.timeout(1_500)
def test_a_short_drill_passes(tmp_path: Path) -> None:
    with Drill(tmp_path, "--kills", str(SHORT), "--seed", str(SEED)) as drill:
        code = drill.wait(1_450)
        assert code == 0, drill.words()
    assert traces(drill.output + drill.logged) == []
    found = drill.result()
    summary = found["summary"]
    assert summary["verdict"] == "PASS"
    assert summary["faults"] == SHORT
    assert [fault["kind"] for fault in found["faults"]] == [fault.kind for fault in make_plan(SHORT, SEED)]
    assert (summary["lost"], summary["duplicated"], summary["torn"]) == (0, 0, 0)
    assert summary["recover_s"]["p95"] > 0
    assert {(job["job"], job["account"]["verdict"]) for job in found["jobs"]} == {("rows", "PASS"), ("sums", "PASS")}
    assert {job["job"]: job["account"]["state_equal"] for job in found["jobs"]}["sums"] is True
    assert all(check["passed"] for check in found["checks"])
    aimed = {check["name"].split(": ")[1] for check in found["checks"]}
    assert {"the commit was in doubt", "the batch is skipped"} <= aimed
    (counted,) = (one for one in found["transactions"] if one["job"] == "rows")
    assert counted["unknown_resolved"] >= 2
    assert counted["replayed"] >= 1
    assert counted["handed_again"] >= 2
    drill.leaves_nothing()


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_short_drill_on_a_standalone_cluster_passes_and_leaves_nothing(tmp_path: Path) -> None:
    kinds = {"node-kill", "topic-move", "partitions-added"}
    with Drill(tmp_path, "--standalone", "--rounds", "1", "--faults", ",".join(sorted(kinds))) as drill:
        code = drill.wait(850)
        assert code == 0, drill.words()
    assert traces(drill.output + drill.logged) == []
    found = drill.result()
    assert {fault["kind"] for fault in found["faults"]} == kinds
    assert (found["summary"]["lost"], found["summary"]["duplicated"], found["summary"]["torn"]) == (0, 0, 0)
    drill.leaves_nothing()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_ctrl_c_leaves_no_process_and_no_folder_and_a_report_that_says_unknown(tmp_path: Path) -> None:
    with Drill(tmp_path, "--kills", "40", "--faults", "network") as drill:
        drill.until(drill.faults)
        os.kill(drill.pid, signal.SIGINT)
        code = drill.wait(400)
        assert code == 3, drill.words()
    summary = drill.result()["summary"]
    assert summary["verdict"] == "UNKNOWN"
    assert "The drill was interrupted" in " ".join(summary["reasons"])
    assert "UNKNOWN" in (drill.report / "report.html").read_text()
    drill.leaves_nothing()


# ---- total loss


@pytest.mark.soak
def test_a_job_comes_back_from_a_savepoint_on_another_clusters_topic(tmp_path: Path) -> None:
    command = python("statestore.cli.app", "drill", "total-loss", "--report", tmp_path / "r")
    drill = ChildProcess(command, tmp_path / "drill.log", {"TMPDIR": str(tmp_path)})
    drill.finish()
    assert traces(drill.output + drill.logged) == []
    summary = json.loads((tmp_path / "r" / "report.json").read_text())["summary"]
    assert summary["verdict"] == "PASS"
    assert (summary["faults"], summary["lost"], summary["duplicated"], summary["torn"]) == (1, 0, 0, 0)
    assert summary["recover_s"]["p95"] > 0
    assert (tmp_path / "r" / "report.html").stat().st_size > 1000
    left = [one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or [])]
    assert left == [], "the drill's servers have ended with it"
    assert sorted(path.name for path in tmp_path.glob("*-*")) == [], "and their data are gone"
