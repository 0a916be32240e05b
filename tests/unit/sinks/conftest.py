"""A sink whose runs are fakes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import eos
from eos.delivery.delivery import Write
from eos.sinks import shared_run
from eos.sinks.context import SinkContext
from eos.sinks.write_plan import WritePlan
from tests.unit.sinks.fakes import OF_PARENT, OF_STREAM, FakeQuery, FakeRun


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> eos.Sink:
    monkeypatch.setattr(SinkContext, "check_cluster", lambda self: None)
    monkeypatch.setattr(WritePlan, "write", lambda self, df, topic: Write(df, topic))
    monkeypatch.setattr(shared_run, "begin", lambda start: FakeRun(start.identity, start.query))
    monkeypatch.setattr(shared_run, "_shared", weakref.WeakValueDictionary())
    monkeypatch.setattr(FakeRun, "made", [])
    monkeypatch.setattr(FakeRun, "fails", frozenset())
    return eos.sink("pulsar://nowhere", topic="t", name="s")


@pytest.fixture
def query(sink: eos.Sink, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeQuery]:
    """The query whose batch function runs in the test's thread; the sink has a sink's run of it already."""
    query, here = FakeQuery(), threading.get_ident()
    monkeypatch.setattr(SparkSession, "_instantiatedSession", OF_PARENT)
    monkeypatch.setattr(
        "eos.spark.query.current_query",
        lambda session=None, known=None: query if threading.get_ident() == here else None,
    )
    monkeypatch.setattr(
        "eos.spark.query.query_of",
        lambda session, query_id=None: query if session is OF_STREAM or query_id == query.query_id else None,
    )
    monkeypatch.setattr("eos.spark.query.foreach_batch_queries", lambda session: [query])
    yield query
    query.ended.set()
