"""The entries that a batch read keeps stored: none, unless that is asked for, since they would count as backlog."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from eos.by_name.data_source import PulsarDataSource
from eos.doctor.leftovers import LEFT
from eos.pulsar.net.client import Client
from eos.source.batch import PulsarReader
from eos.source.batch_plan import batch_ranges
from eos.source.boundaries import Boundary
from eos.source.brokers import PulsarBrokers
from eos.source.options import parse_options

MakeTopic = Callable[..., str]


NAME = re.compile("spark-batch-(?P<application>.+)-(?P<read>[0-9a-f]{32})-(?P<task>[0-9]+)")


class LookingReader(PulsarReader):
    """Notes in its task which subscriptions the topic has while the range is read."""

    source: LookingSource

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batches: Any = super().read(partition)
        first = next(batches)
        context = TaskContext.get()
        assert context is not None
        topic, given = partition.part.topic, self.source.options  # type: ignore[attr-defined]
        seen = {"task": context.taskAttemptId(), "names": list(durable_subscriptions(given["admin.url"], topic))}
        Path(given["notes"], str(context.taskAttemptId())).write_text(json.dumps(seen))
        yield first
        yield from batches


class LookingSource(PulsarDataSource):
    """The source whose tasks note the subscriptions; the option "notes" names the folder."""

    @classmethod
    def name(cls) -> str:
        return "looking"

    def _reading(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if name not in ("notes", "path")}

    def reader(self, schema: StructType) -> DataSourceReader:
        made = super().reader(schema)
        made.__class__ = LookingReader
        made.source = self  # type: ignore[attr-defined]
        return made


def durable_subscriptions(admin_url: str, topic: str) -> dict[str, int]:
    """Return the backlog of each durable subscription, in entries."""
    path = topic.removeprefix("persistent://")
    answer = httpx.get(f"{admin_url}/admin/v2/persistent/{path}/stats?getPreciseBacklog=true", timeout=30)
    found = answer.raise_for_status().json()["subscriptions"]
    return {name: int(one["msgBacklog"]) for name, one in found.items() if one["durable"]}


@pytest.mark.parametrize(
    ("options", "backlogs"),
    [
        ({}, []),
        ({"retainwhilereading": "true"}, [10]),
        ({"retainwhilereading": "true", "startingoffsets": "latest-3"}, [3]),
    ],
)
def test_a_batch_read_is_backlog_only_where_that_is_asked_for_and_from_its_start_on(
    pulsar: Any,
    ours: Client,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    backlogs: list[int],
) -> None:
    task = object.__new__(TaskContext)
    task._taskAttemptId, task._localProperties = 7, {}
    monkeypatch.setattr(TaskContext, "_taskContext", task)
    topic = make_topic("retain")
    with ours.producer(topic) as producer:
        sent = [producer.send_record(b"row %d" % number, None) for number in range(10)]
    given = {"service.url": pulsar.service_url, "topic": topic} | options
    if given.get("startingoffsets") == "latest-3":
        given["startingoffsets"] = f'{{"{topic}": "{sent[7].ledger}:{sent[7].entry}"}}'
    source = PulsarDataSource(given)
    reader = source.reader(source.schema())
    (part,) = reader.partitions()
    batches: Any = reader.read(part)
    next(batches)
    assert sorted(durable_subscriptions(pulsar.admin_url, topic).values()) == backlogs
    list(batches)
    assert durable_subscriptions(pulsar.admin_url, topic) == {}


def test_a_topic_that_is_deleted_meanwhile_ends_no_read_that_is_at_its_end(
    pulsar: Any, ours: Client, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic("retain-deleted")
    with ours.producer(topic) as producer:
        producer.send_record(b"row", None)
    given = {"service.url": pulsar.service_url, "topic": topic}
    brokers = PulsarBrokers(parse_options(given, "batch"))
    (part,) = batch_ranges(brokers, Boundary("earliest"), Boundary("latest"))
    with brokers.retained(part, "spark-batch-test"):
        assert list(durable_subscriptions(pulsar.admin_url, topic)) == ["spark-batch-test"]
        where = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}?force=true"
        httpx.delete(where, timeout=30).raise_for_status()
    assert not [line for line in caplog.messages if "could not be deleted" in line]
    brokers.close()


def test_the_subscriptions_of_one_read_can_be_recognized_together_and_tell_whose_it_is(
    spark: SparkSession, pulsar: Any, ours: Client, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Two tasks and two jobs of one plan, and a second plan."""
    topic = make_topic("retain-names", partitions=2)
    partitions = [f"{topic}-partition-{number}" for number in range(2)]
    for partition in partitions:
        with ours.producer(partition) as producer:
            producer.send_record(b"row", None)
    spark.dataSource.register(LookingSource)
    given = {"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "topic": topic}
    reading = spark.read.format("looking").options(**given, retainWhileReading="true", notes=str(tmp_path))
    one, other = reading.load(), reading.load()
    for df in (one, one, other):
        assert len(df.collect()) == 2
    seen = [json.loads(note.read_text()) for note in tmp_path.iterdir()]
    names = {note["task"]: name for note in seen for name in note["names"]}
    assert len(names) == len(set(names.values())) == 6, seen
    found = {task: NAME.fullmatch(name) for task, name in names.items()}
    assert all(one is not None and int(one["task"]) == task for task, one in found.items()), names
    assert {one["application"] for one in found.values() if one} == {spark.sparkContext.applicationId}
    reads = [one["read"] for one in found.values() if one]
    assert sorted(map(reads.count, set(reads))) == [2, 4]
    assert all(map(LEFT.fullmatch, names.values()))
    assert [durable_subscriptions(pulsar.admin_url, partition) for partition in partitions] == [{}, {}]
