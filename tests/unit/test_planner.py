"""A test is run again where a Python process of Spark's came too late, and only there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = "from tests.conftest import pytest_runtest_protocol"
TEST = """
import pathlib
import pytest

pytestmark = pytest.mark.jvm
runs = pathlib.Path(__file__).with_name("runs")

@pytest.fixture
def fresh():
    yield [0]

def test_it(fresh):
    fresh[0] += 1
    assert fresh == [1]
    with runs.open("a") as file:
        file.write("x")
    if len(runs.read_text()) < {works_at}:
        raise RuntimeError("{error}")
"""
LATE = "Python worker failed to connect back."


@pytest.mark.parametrize(
    ("error", "works_at", "runs", "passes"),
    [(LATE, 3, 3, True), (LATE, 9, 5, False), ("another error", 2, 1, False)],
)
def test_a_test_is_run_again_only_while_that_is_what_fails(
    tmp_path: Path, error: str, works_at: int, runs: int, passes: bool
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST.format(error=error, works_at=works_at))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "test_it.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) is passes, done.stdout
    assert (tmp_path / "runs").read_text() == "x" * runs
    assert ("is run again" in done.stdout) is (runs > 1)
