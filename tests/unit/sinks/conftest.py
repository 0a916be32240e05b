"""A sink whose runs are fakes."""

from __future__ import annotations

import weakref

import pytest

import eos
from eos.delivery.delivery import Write
from eos.sinks import shared_run
from eos.sinks.context import SinkContext
from eos.sinks.write_plan import WritePlan
from tests.unit.sinks.fakes import FakeRun


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> eos.Sink:
    monkeypatch.setattr(SinkContext, "check_cluster", lambda self: None)
    monkeypatch.setattr(WritePlan, "write", lambda self, df, topic: Write(df, topic))
    monkeypatch.setattr(shared_run, "begin", lambda start: FakeRun(start.identity, start.query))
    monkeypatch.setattr(shared_run, "_shared", weakref.WeakValueDictionary())
    monkeypatch.setattr(FakeRun, "made", [])
    monkeypatch.setattr(FakeRun, "fails", frozenset())
    return eos.sink("pulsar://nowhere", topic="t", name="s")
