"""Everything but the second cluster is lost, and nothing of the output: the whole drill, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.traces import traces


@pytest.mark.soak
def test_a_job_comes_back_from_a_savepoint_on_another_clusters_topic(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "statestore.cli.app", "drill", "total-loss", "--report", str(tmp_path / "r")],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=450,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert traces(ran.stdout + ran.stderr) == []
    summary = json.loads((tmp_path / "r" / "report.json").read_text())["summary"]
    assert summary["verdict"] == "PASS"
    assert (summary["faults"], summary["lost"], summary["duplicated"], summary["torn"]) == (1, 0, 0, 0)
    assert summary["recover_s"]["p95"] > 0
    assert (tmp_path / "r" / "report.html").stat().st_size > 1000
    left = [one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or [])]
    assert left == [], "the drill's servers have ended with it"
    assert sorted(path.name for path in tmp_path.glob("*-*")) == [], "and their data are gone"
