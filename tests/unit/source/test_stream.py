"""What Spark asks of a streaming query's reader without a broker."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import StructType

from eos.errors import EosError, RefusedForGood, Unanswered
from eos.metrics.source_report import PartitionLag, PlannedEntries, report_of
from eos.source import stream
from eos.source.batch_pace import FIRST_ENTRIES
from eos.source.errors import Losses
from eos.source.options import parse_options
from eos.source.stream import PulsarStreamReader
from tests.unit.source.fake_brokers import FakeBrokers, FakeTopic, entries


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxEntriesPerTrigger": "5", "maxBytesPerTrigger": "9"}, ReadMaxRows(5)),
        ({"maxBytesPerTrigger": "9"}, ReadMaxBytes(9)),
        ({"targetBatchSeconds": "2"}, ReadMaxRows(FIRST_ENTRIES)),
        ({"targetBatchSeconds": "2", "maxEntriesPerTrigger": "5"}, ReadMaxRows(5)),
    ],
)
def test_spark_is_told_whether_there_is_a_limit(given: dict[str, str], limit: ReadLimit) -> None:
    options = parse_options({"service.url": "pulsar://h:1", "topic": "t", "subscription": "s"} | given, "stream")
    assert PulsarStreamReader(options, StructType()).getDefaultReadLimit() == limit


class Brokers(FakeBrokers):
    """What the reader of a query asks beside its plan."""

    def __init__(self, **topics: FakeTopic) -> None:
        super().__init__(**topics)
        self.lose = Losses(fail=False)

    def splitter(self) -> Any:
        return lambda ranges: ranges

    def publish_time(self, topic: str, entry: Any) -> int:
        return 1_000 + int(entry.entry)


def reading(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> PulsarStreamReader:
    monkeypatch.setattr(stream, "PulsarBrokers", lambda options: brokers)
    given = {"maxEntriesPerTrigger": "6", "failOnDataLoss": "false"}
    options = parse_options({"service.url": "pulsar://h:1", "topics": "a,b", "subscription": "s"} | given, "stream")
    return PulsarStreamReader(options, StructType())


def test_each_batch_is_reported_with_the_losses_of_the_plan_and_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = {name: FakeTopic(entries(5, 0, 9)) for name in ("a", "b")}
    brokers = Brokers(**topics)
    reader = reading(brokers, monkeypatch)

    def planned(start: Any) -> tuple[Any, Any]:
        end = reader.latestOffset(start, ReadMaxRows(6))
        return end, report_of(SimpleNamespace(latestOffset=json.dumps(reader.reportLatestOffset())))  # type: ignore[arg-type]

    end, report = planned(reader.initialOffset())
    assert report.planned == (PlannedEntries(reader="brokers", entries=6),)
    assert report.lags == tuple(PartitionLag(topic=name, entries=7, oldest_ms=1_003) for name in ("a", "b"))
    assert report.losses == 0
    del topics["a"], brokers.held["a"]
    brokers.lose("found while the query began")
    end, report = planned(end)
    assert report.planned == (PlannedEntries(reader="brokers", entries=6),)
    assert [lag.topic for lag in report.lags] == ["b"]
    assert report.losses == 2


@pytest.mark.parametrize("error", [Unanswered("no answer"), RefusedForGood("ask", "AuthorizationError", "no right")])
def test_a_batch_is_planned_though_nobody_knows_the_newest_messages(
    error: EosError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark asks for them before it keeps the plan."""
    brokers = Brokers(a=FakeTopic(entries(5, 0, 9)), b=FakeTopic())
    reader = reading(brokers, monkeypatch)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(6))

    def refused(topic: str) -> None:
        raise error

    monkeypatch.setattr(brokers, "last", refused)
    found = reader.reportLatestOffset()
    assert found is not None
    assert found["topics"] == {"a": end["topics"]["a"]}
    report = report_of(SimpleNamespace(latestOffset=json.dumps(found)))  # type: ignore[arg-type]
    assert report is not None
    assert (report.lags, report.lags_known) == ((), False)
    assert report.planned == (PlannedEntries(reader="brokers", entries=6),)
    (told,) = caplog.messages
    assert f"so no lag is reported for this micro-batch: {error}" in told
