"""A query that is to end after the batch in hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from eos.errors import InvalidInput, NotCommitted
from eos.spark import query_stop
from eos.spark.query import Query


def asked(monkeypatch: pytest.MonkeyPatch, runs: dict[str, bool]) -> tuple[Query, dict[str, bool]]:
    """A query whose state is that of an ended one, and what its thread shows."""
    monkeypatch.setattr(query_stop, "_asked", runs)
    shows = {"alive": True, "interrupted": False}
    thread = SimpleNamespace(isAlive=lambda: shows["alive"], isInterrupted=lambda: shows["interrupted"])
    execution: Any = SimpleNamespace(isActive=lambda: False, queryExecutionThread=lambda: thread)
    nothing: Any = None
    return Query("id", "run", "bk://zk/q", execution, nothing), shows


def by(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def test_until_its_batch_is_done_it_counts_as_active(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark says that it isn't any more, and a sink that believed it would abort the batch."""
    query, _ = asked(monkeypatch, {})
    assert not query.is_active()
    query, thread = asked(monkeypatch, {"run": False})
    assert query.is_active()
    assert query.is_active(NotCommitted("a task was lost: StackInterruptedly, job group other was cancelled"))
    thread["alive"] = False
    assert not query.is_active()


@pytest.mark.parametrize(
    "failed",
    [
        None,
        by(NotCommitted("batch 3 was aborted"), RuntimeError("java.lang.InterruptedException\n\tat java.base/…")),
        by(NotCommitted("batch 3 was aborted"), RuntimeError("[SPARK_JOB_CANCELLED] Job 7 cancelled Query x [run]")),
        RuntimeError("java.nio.channels.ClosedByInterruptException"),
    ],
)
def test_stopped_meanwhile_it_is_active_no_more(monkeypatch: pytest.MonkeyPatch, failed: Exception | None) -> None:
    """Its thread is interrupted; or was, and what the JVM was at has failed with it and has cleared the sign."""
    query, thread = asked(monkeypatch, {"run": False})
    thread["interrupted"] = failed is None
    assert not query.is_active(failed)
    thread["interrupted"] = False
    assert not query.is_active(), "for good"


def test_a_query_of_spark_connect_is_refused() -> None:
    with pytest.raises(InvalidInput, match="classic mode"):
        query_stop.end_after_batch(cast(StreamingQuery, SimpleNamespace()), 1)
