"""Finished batches, live sinks and progress of sources to tell exporters of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from eos.metrics.batch import FinishedBatch
from eos.metrics.progress import Progress
from eos.metrics.source_report import PartitionLag, SourceReport

FLIGHTS, DELAYS = "persistent://public/default/flights", "persistent://public/default/delays"

COMMITTED: dict[str, Any] = {
    "sink": "flights",
    "job": False,
    "batch_id": 812,
    "query_id": "query",
    "run_id": "run",
    "outcome": "committed",
    "error": None,
    "transaction": "(3,1206)",
    "attempts": 2,
    "rows": {FLIGHTS: 20, DELAYS: 5},
    "bytes": {FLIGHTS: 2_000, DELAYS: 50},
    "frames": {FLIGHTS: 2, DELAYS: 1},
    "duration_s": 0.4,
    "delivery_s": 0.25,
    "step_s": {"open": 0.125, "end-answered": 0.0625},
}
NOTHING: dict[str, Any] = {"transaction": None, "rows": {}, "bytes": {}, "frames": {}, "step_s": {}, "delivery_s": 0.0}


def finished(**different: Any) -> FinishedBatch:
    """Return a committed batch, but for what is different."""
    return FinishedBatch(**COMMITTED | different)


def failed(error: str, outcome: str = "failed") -> FinishedBatch:
    """Return a batch whose call has raised."""
    return finished(**NOTHING, outcome=outcome, error=error, attempts=1)


def source(*topics: str, rows: int = 100) -> Any:
    """Return the progress of a source of ours that has read so far in these physical topics."""
    end = {"version": 1, "topics": dict.fromkeys(topics, "8:13")}
    return SimpleNamespace(endOffset=json.dumps(end), latestOffset=None, numInputRows=rows)


def read(*lags: PartitionLag, report: SourceReport | None = None, **different: Any) -> Progress:
    """Return the progress of a batch that has read two partitions, but for what is different.

    Args: the lags of its report, or all of the report; Spark's figures.
    """
    facts: dict[str, Any] = {
        "id": "0a1b",
        "runId": "run",
        "name": "counts",
        "sources": [source(f"{FLIGHTS}-0", f"{FLIGHTS}-1")],
        "observedMetrics": {},
    }
    return Progress(SimpleNamespace(**facts | different), (), (report or SourceReport(lags=lags),))  # type: ignore[arg-type]


@dataclass(eq=False)
class Live:
    """A sink whose open transaction is of a given age."""

    name: str
    age: float | None = None
    job: bool = False

    def open_transaction_s(self) -> float | None:
        return self.age
