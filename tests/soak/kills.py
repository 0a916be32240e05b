"""Run the driver, and kill it with SIGKILL again and again."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.spark_session import quick_start

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.05
PATIENCE_S = 900


def launch(job: str, arguments: Mapping[str, Any], log: Path) -> subprocess.Popen[str]:
    """Start the driver in a process group of its own, its Python workers with it."""
    with log.open("a") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.soak.driver", job, json.dumps(arguments)],
            cwd=log.parent,
            env={**os.environ, **quick_start(with_bk=True), "PYTHONPATH": str(ROOT), "TZ": "UTC"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def answer(started: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    """Wait for the end of a driver, and return what it says."""
    try:
        said, _ = started.communicate(timeout=PATIENCE_S)
    finally:
        kill(started)
    assert started.returncode == 0, log.read_text()[-4_000:]
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def kill(started: subprocess.Popen[str]) -> None:
    """SIGKILL the driver, its JVM and its workers, wherever they are."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    if started.stdout is not None:
        started.stdout.close()


def run_killed(arguments: Mapping[str, Any], log: Path, kills: int, seed: int) -> list[int]:
    """Run the queries to their end, killing the driver so often on the way.

    The kills are spread over the batches, each at a moment drawn from `seed`.

    Returns:
        For each kill, how many batches the slowest query had output.
    """
    chance = random.Random(seed)
    at = sorted(chance.sample(range(2, arguments["batches"] - 2), kills))
    found = []
    for threshold in at:
        started = launch("run", arguments, log)
        try:
            _wait(started, arguments, threshold, log)
            time.sleep(chance.random() * 0.8)
        finally:
            kill(started)
        found.append(min(_done(arguments).values()))
    said = answer(launch("run", arguments, log), log)
    assert said["failures"] == [], said["failures"]
    return found


def _wait(started: subprocess.Popen[str], arguments: Mapping[str, Any], threshold: int, log: Path) -> None:
    batches, deadline = arguments["batches"], time.monotonic() + PATIENCE_S
    before = _done(arguments)
    while True:
        now = _done(arguments)
        # Each query must have done something since the last kill: else nothing of it was killed.
        if min(now.values()) >= threshold and all(now[name] > min(before[name], batches - 1) for name in now):
            return
        assert started.poll() is None, f"the driver ended by itself:\n{log.read_text()[-4_000:]}"
        assert time.monotonic() < deadline, f"stalled at {now}:\n{log.read_text()[-4_000:]}"
        time.sleep(POLL_S)


def _done(arguments: Mapping[str, Any]) -> dict[str, int]:
    """How many batches each query has output."""
    names = [f"{provider}-{query}" for provider, query in arguments["pairs"]]
    return {name: len(list(Path(arguments["out"], name).glob("*.json"))) for name in names}
