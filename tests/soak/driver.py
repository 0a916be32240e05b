"""A Spark driver that is there to be killed: `python -m tests.soak.driver JOB '{"argument": …}'`.

It runs several queries at once. What a batch outputs goes into a file of its own; a batch that is run again must output
the same. None of the queries runs far ahead of the others, so that each kill finds all of them at work.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

import statestore
from tests.driver_session import driver_session
from tests.soak.queries import SESSION, start

LEAD = 3  # batches that a query may be ahead of the slowest
PATIENCE_S = 180


class Ended(Exception):
    """All batches that were asked for are committed."""


class Pace:
    """Keeps the queries of a driver together."""

    def __init__(self, pairs: Sequence[Sequence[str]]) -> None:
        self._at = {tuple(pair): -1 for pair in pairs}
        self._changed = threading.Condition()

    def reach(self, pair: Sequence[str], batch: float) -> None:
        """Note where a query is, and wait for the others."""
        with self._changed:
            self._at[tuple(pair)] = batch  # type: ignore[assignment]
            self._changed.notify_all()
            self._changed.wait_for(lambda: batch <= min(self._at.values()) + LEAD or batch == float("inf"), PATIENCE_S)


def run(
    root: str, out: str, pairs: Sequence[Sequence[str]], batches: int, options: dict[str, str] | None = None
) -> dict[str, Any]:
    """Run the queries until each has committed so many batches. Checkpoints are in ROOT, outputs in OUT, by pair."""
    spark = driver_session(SESSION, bk=options or {}, level="OFF")
    pace = Pace(pairs)
    queries = []
    for provider, query in pairs:
        folder = Path(out, f"{provider}-{query}")
        folder.mkdir(parents=True, exist_ok=True)
        each = _writer(folder, batches, pace, (provider, query))
        queries.append(start(spark, provider, query, f"{root.rstrip('/')}/{folder.name}", each))
    failures = []
    for (provider, query), running in zip(pairs, queries, strict=True):
        try:
            running.awaitTermination()
        except Exception as error:
            if Ended.__name__ not in str(error):
                failures.append(f"{provider} {query}: {error}")
    return {"failures": failures}


def _writer(folder: Path, batches: int, pace: Pace, pair: Sequence[str]) -> Callable[[DataFrame, int], None]:
    def write(rows: DataFrame, batch: int) -> None:
        if batch >= batches:
            pace.reach(pair, float("inf"))
            raise Ended
        pace.reach(pair, batch)
        text = json.dumps(sorted([int(cell) for cell in row] for row in rows.collect()))
        target = folder / f"{batch}.json"
        if target.exists() and target.read_text() != text:
            (folder / f"{batch}.differs").write_text(text)
        unfinished = folder / f"{batch}.unfinished"
        unfinished.write_text(text)
        os.replace(unfinished, target)

    return write


def read(
    root: str, pairs: Sequence[Sequence[str]], batch: int, options: dict[str, str] | None = None
) -> dict[str, Any]:
    """Read the state after a batch through Spark's state data source: all rows of each pair, as sorted text."""
    spark = driver_session(SESSION, bk=options or {}, level="OFF")
    states = {}
    for provider, query in pairs:
        rows = []
        for part in _PARTS.get(query, ({},)):
            frame = statestore.read_state(f"{root.rstrip('/')}/{provider}-{query}", batch, spark=spark, **part)
            rows += [f"{part} {row}" for row in frame.collect()]
        states[f"{provider}-{query}"] = sorted(rows)
    return states


_PARTS: dict[str, tuple[dict[str, Any], ...]] = {
    "join": ({"join_side": "left"}, {"join_side": "right"}),
    "transform": ({"state_variable": "total"}, {"state_variable": "totals"}, {"state_variable": "sizes"}),
}


_JOBS: dict[str, Callable[..., dict[str, Any]]] = {"run": run, "read": read}

if __name__ == "__main__":
    began = time.monotonic()
    answer = _JOBS[sys.argv[1]](**json.loads(sys.argv[2]))
    print(json.dumps(answer | {"seconds": time.monotonic() - began}))
