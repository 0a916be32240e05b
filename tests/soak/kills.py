"""Run the driver, and kill it with SIGKILL again and again."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.child_process import ChildProcess, python
from tests.spark_session import quick_start


def launch(job: str, arguments: Mapping[str, Any], log: Path) -> ChildProcess:
    """Start the driver."""
    environment = {**quick_start(with_bk=True), "TZ": "UTC"}
    return ChildProcess(python("tests.soak.driver", job, arguments), log, environment)


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
        with launch("run", arguments, log) as started:
            _wait(started, arguments, threshold)
            time.sleep(chance.random() * 0.8)
        found.append(min(_done(arguments).values()))
    failures = launch("run", arguments, log).answer()["failures"]
    assert failures == [], failures
    return found


def _wait(started: ChildProcess, arguments: Mapping[str, Any], threshold: int) -> None:
    batches, before = arguments["batches"], _done(arguments)

    def worked() -> bool:
        """Whether each query has done something since the last kill: else nothing of it was killed."""
        now = _done(arguments)
        return min(now.values()) >= threshold and all(now[name] > min(before[name], batches - 1) for name in now)

    started.until(worked, lambda: f"stalled at {_done(arguments)}")


def _done(arguments: Mapping[str, Any]) -> dict[str, int]:
    """How many batches each query has output."""
    names = [f"{provider}-{query}" for provider, query in arguments["pairs"]]
    return {name: len(list(Path(arguments["out"], name).glob("*.json"))) for name in names}
