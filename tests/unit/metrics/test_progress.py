"""Spark's progress, made up, joined with what sinks tell."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row

import eos
from eos.metrics import progress as module
from eos.metrics.progress import Progress
from eos.metrics.source_report import PartitionLag, PlannedEntries, SourceReport
from tests.unit.metrics.batches import finished


def told(batch_id: int = 812, run: str = "run", **different: Any) -> Any:
    """An event of Spark's."""
    facts: dict[str, Any] = {
        "id": "0a1b",
        "runId": run,
        "name": "counts",
        "batchId": batch_id,
        "batchDuration": 610,
        "numInputRows": 20_000,
        "durationMs": {"triggerExecution": 610, "walCommit": 41, "addBatch": 503, "getBatch": 0},
        "stateOperators": [],
        "observedMetrics": {},
        "sources": [],
    }
    return SimpleNamespace(progress=SimpleNamespace(**facts | different))


def test_a_batch_is_joined_with_each_sink_that_was_in_it_and_with_no_other() -> None:
    seen: list[Progress] = []
    listener = eos.listener(seen.append)
    flights, delays = finished(), finished(sink="delays")
    for batch in (flights, finished(batch_id=811), finished(run_id="another run"), delays):
        listener(batch)
    listener.onQueryProgress(told())
    listener.onQueryProgress(told())
    assert [one.written for one in seen] == [(flights, delays), ()], "told once, and then forgotten"
    assert seen[0].spark.batchId == 812


@pytest.mark.parametrize("different", [{"run_id": None}, {"job": True}])
def test_what_spark_never_tells_of_is_not_kept(different: dict[str, Any]) -> None:
    listener = eos.listener()
    listener(finished(**different))
    assert not listener._finished


def test_batches_that_spark_does_not_tell_of_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that failed; and all, where the listener was not given to Spark."""
    monkeypatch.setattr(module, "_KEPT", 2)
    listener = eos.listener()
    for batch_id in range(5):
        listener(finished(batch_id=batch_id))
    assert [batch_id for _, batch_id in listener._finished] == [3, 4]
    listener(finished(run_id="another run"))
    listener.onQueryTerminated(SimpleNamespace(runId="run"))  # type: ignore[arg-type]
    assert list(listener._finished) == [("another run", 812)]


def test_both_are_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    listener = eos.listener()
    listener(finished())
    with caplog.at_level(logging.INFO, logger="eos.progress"):
        listener.onQueryProgress(
            told(
                stateOperators=[SimpleNamespace(numRowsTotal=1_000), SimpleNamespace(numRowsTotal=200)],
                observedMetrics={"input": Row(rows=20_000)},
            )
        )
    assert [record.getMessage() for record in caplog.records if record.name == "eos.progress"] == [
        "query counts, batch 812: 20,000 rows in, 0.610 s with addBatch 0.503, walCommit 0.041; sink flights committed "
        "25 rows in 0.400 s with delivery 0.250, commit 0.062, attempts 2; state 1,200 rows; observed input "
        "{'rows': 20000}"
    ]


def test_what_a_batch_has_left_unread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.metrics.progress.time.time", lambda: 1_700_000_034.2)
    seen: list[Progress] = []
    listener = eos.listener(seen.append, lambda progress: seen.append(progress))
    lag = {"a": {"entries": 1_199, "oldest_ms": 1_700_000_000_000}, "b": {"entries": 1, "whole": False}}
    newest = json.dumps({"version": 1, "topics": {"a": "8:1"}, "lag": lag})
    listener.onQueryProgress(told(sources=[SimpleNamespace(latestOffset=newest), SimpleNamespace(latestOffset=None)]))
    assert len(seen) == 2, "each function is called"
    assert seen[0].line().endswith("; at least 1,200 entries left in 2 partitions, the oldest 34 s old")
    assert seen[0].lags == (
        PartitionLag(topic="a", entries=1_199, oldest_ms=1_700_000_000_000),
        PartitionLag(topic="b", entries=1, whole=False),
    )


def test_what_tasks_were_to_read_and_the_losses_of_the_run_are_told() -> None:
    nothing = told(durationMs={}, numInputRows=0).progress
    planned = (
        PlannedEntries(reader="brokers", entries=5, whole=False),
        PlannedEntries(reader="bookies", entries=1_900),
    )
    reports = (SourceReport(planned=planned, losses=2), None, SourceReport(planned=planned[:1], losses=1))
    assert Progress(nothing, (), reports).line().split("; ")[1:] == [
        "at least 1,910 entries planned: 10 from brokers, 1,900 from bookies",
        "3 losses of data since the query began",
    ]
    unknown = (SourceReport(lags_known=False), None)
    assert Progress(nothing, (), unknown).line().split("; ")[1:] == ["the entries left are not known"]


def test_a_function_that_raises_does_not_keep_the_batch_from_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Progress] = []

    def breaks(progress: Progress) -> None:
        raise OSError("no disk")

    with caplog.at_level(logging.ERROR, logger="eos.progress"):
        eos.listener(breaks, seen.append).onQueryProgress(told())
    assert len(seen) == 1
    assert "breaks raised. The query is not affected" in caplog.text
    assert "no disk" in caplog.text


def test_a_query_without_a_name_and_a_sink_is_told_all_the_same() -> None:
    nothing = Progress(told(name=None, durationMs={}, numInputRows=0).progress, ())
    assert nothing.line() == "query 0a1b, batch 812: 0 rows in, 0.610 s"
