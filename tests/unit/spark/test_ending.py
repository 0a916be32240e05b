"""A query that is to end after the batch in hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from eos.errors import InvalidInput
from eos.spark import ending
from eos.spark.query import Query


def test_until_its_batch_is_done_it_counts_as_active(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark says that it isn't any more, and a sink that believed it would abort the batch."""
    execution: Any = SimpleNamespace(isActive=lambda: False)
    nothing: Any = None
    query = Query("id", "run", "bk://zk/q", execution, nothing, nothing, nothing, nothing)
    assert not query.is_active()
    monkeypatch.setattr(ending, "_asked", {"run"})
    assert query.is_active()


def test_a_query_of_spark_connect_is_refused() -> None:
    with pytest.raises(InvalidInput, match="classic mode"):
        ending.end_after_batch(cast(StreamingQuery, SimpleNamespace()), 1)
