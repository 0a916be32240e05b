"""The calls of Spark's own workers to the source, in this process: no JVM, but a real broker."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.datasource_internal import _streamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from eos.by_name.data_source import PulsarDataSource
from eos.metrics.source_report import PlannedEntries, SourceReport, report_of
from eos.pulsar.net.client import Client
from eos.pulsar.wire.entry import Entry
from eos.source.stream import PulsarStreamReader
from pyspark_pulsar import DefaultSource
from tests.conftest import MakeTopic
from tests.integration.source.streams import write

TEXT = StructType([StructField("value", StringType()), StructField("__topic", StringType())])


def sent(value: Any) -> Any:
    """Send something to another process and back."""
    return pickle.loads(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


def source(**options: str) -> PulsarDataSource:
    return PulsarDataSource(CaseInsensitiveDict({name.lower(): value for name, value in options.items()}))


def through_spark(made: PulsarDataSource, reader: Any, partitions: Any) -> pa.Table:
    """Read partitions as a task does: with a reader that was sent there."""
    batches = [
        batch
        for partition in partitions
        for batch in records_to_arrow_batches(sent(reader).read(sent(partition)), 10_000, TEXT, made)
    ]
    return pa.Table.from_batches(batches) if batches else None


def reported(reader: Any) -> SourceReport:
    """Return the report of the batch that was just planned, as Spark's progress has it."""
    report = report_of(SimpleNamespace(latestOffset=json.dumps(reader.reportLatestOffset())))  # type: ignore[arg-type]
    assert report is not None
    return report


def test_spark_finds_the_source_by_its_name() -> None:
    assert DefaultSource is PulsarDataSource
    assert DefaultSource.name() == "pulsar"


def test_a_stream_is_planned_and_read(pulsar: Any, ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("worker", 2)
    write(ours, f"{topic}-partition-1", "a", "b")
    given = {"service.url": pulsar.service_url, "topic": topic, "subscription": "job", "startingOffsets": "earliest"}
    made = sent(source(**given))
    reader = _streamReader(made, TEXT)
    assert isinstance(reader, PulsarStreamReader)
    assert isinstance(reader.getDefaultReadLimit(), ReadAllAvailable)
    start = json.loads(json.dumps(reader.initialOffset()))
    end = json.loads(json.dumps(reader.latestOffset(start, ReadAllAvailable())))
    newest = {
        "version": 1,
        "topics": {topic: place for topic, place in end["topics"].items() if not place.startswith("pinned")},
    }
    planned = PlannedEntries(reader="brokers", entries=2)
    assert reader.reportLatestOffset() == SourceReport(planned=(planned,)).within(newest)
    rows = through_spark(made, _streamReader(sent(made), TEXT), reader.partitions(start, end))
    assert rows.to_pylist() == [{"value": value, "__topic": topic} for value in ("a", "b")]
    assert reader.partitions(end, end) == []
    reader.commit(end)
    reader.stop()


def test_a_limit_of_the_options_counts_unless_spark_asks_for_everything(
    pulsar: Any, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("limited")
    places = write(ours, topic, "a", "b", "c")
    given = {"service.url": pulsar.service_url, "topic": topic, "subscription": "job", "startingOffsets": "earliest"}
    reader = _streamReader(source(**given, maxEntriesPerTrigger="2"), TEXT)
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(2)
    assert reader.latestOffset(start, limit)["topics"] == {topic: str(places[1])}
    assert reader.latestOffset(start, ReadAllAvailable())["topics"] == {topic: str(places[2])}
    assert not reported(reader).lags, "all was read"
    reader.stop()


@pytest.mark.parametrize("knows_ledgers", [True, False])
def test_the_report_says_what_a_batch_leaves_unread(
    pulsar: Any, ours: Client, admin: Any, make_topic: MakeTopic, knows_ledgers: bool
) -> None:
    topic = make_topic("left")
    write(ours, topic, "a", "b", "c")
    admin("PUT", topic, "unload")  # a new ledger begins
    write(ours, topic, "d", "e")
    given = {"service.url": pulsar.service_url, "topic": topic, "subscription": "job", "startingOffsets": "earliest"}
    given |= {"admin.url": pulsar.admin_url} if knows_ledgers else {}
    reader = _streamReader(source(**given, maxEntriesPerTrigger="1"), TEXT)
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    report = reported(reader)
    (lag,) = report.lags
    end = reader.latestOffset(end, ReadAllAvailable())
    rest = reported(reader).planned
    assert not reported(reader).lags
    reader.latestOffset(end, ReadAllAvailable())
    assert not reported(reader).planned, "nothing new came"
    reader.stop()
    with ours.entry_reader(topic, None) as entries:
        stored: list[Entry] = []
        while len(stored) < 5:
            stored += entries.read(10)
    assert (lag.entries, lag.whole) == ((4, True) if knows_ledgers else (2, False))
    assert report.planned == (PlannedEntries(reader="brokers", entries=1),)
    assert rest == (PlannedEntries(reader="brokers", entries=lag.entries, whole=lag.whole),)
    assert lag.oldest_ms == stored[1].metadata.publish_time


@pytest.mark.parametrize("options", [{}, {"endingTime": "1"}])
def test_a_batch_is_planned_and_read(pulsar: Any, ours: Client, make_topic: MakeTopic, options: dict[str, str]) -> None:
    topic = make_topic("worker")
    write(ours, topic, "a", "b")
    made = sent(source(**{"service.url": pulsar.service_url, "topic": topic}, **options))
    reader = made.reader(TEXT)
    rows = through_spark(made, reader, reader.partitions())
    assert (rows is None) if options else (rows.to_pylist() == [{"value": v, "__topic": topic} for v in ("a", "b")])
