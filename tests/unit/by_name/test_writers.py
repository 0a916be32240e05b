"""The writers by name, without Spark and brokers around them: what a task reports, and what ends a save."""

from __future__ import annotations

import logging
import pickle
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StringType, StructType

from eos.by_name import writers
from eos.by_name.options import parse_write_options
from eos.by_name.writers import COMPARES_SHUFFLES, TaskDone, batch_writer, see_that_all_is_written, stream_writer
from eos.delivery.row_writer import WriteReport
from eos.errors import ConnectionLost, FrameTooLarge, InvalidInput, TopicMissing, Unacknowledged, Unreachable
from eos.pulsar.net.client import Client
from eos.spark import capabilities, pyspark_api

OPTIONS = parse_write_options({"service.url": "pulsar://nowhere", "topic": "t", "guarantee": "at-least-once"}, "it")
ROWS = StructType().add("__key", StringType()).add("value", StringType())
TOPIC = "persistent://public/default/t"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the broker have a topic of three partitions, and note how often it is asked."""
    calls: list[str] = []

    def partitions(self: Client, topic: str) -> int:
        calls.append(topic)
        return 3

    monkeypatch.setattr(Client, "partitions", partitions)
    return calls


@dataclass
class Context:
    compares: str | None = None

    def partitionId(self) -> int:  # noqa: N802  Spark's name
        return 7

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return self.compares if name == COMPARES_SHUFFLES else None


@dataclass
class FakeWriter:
    """Notes what is asked of it, and ends the awaiting of receipts as given."""

    failure: Exception | None = None
    events: list[str] = field(default_factory=list)

    def write(self, batch: pa.RecordBatch) -> None:
        self.events.append(f"write {batch.to_pydict()}")

    def send_rest(self) -> WriteReport:
        self.events.append("send the rest")
        return WriteReport()

    def finish(self) -> None:
        self.events.append("await receipts, close")
        if self.failure is not None:
            raise self.failure

    def abandon(self) -> None:
        self.events.append("abandon")


def ran(
    monkeypatch: pytest.MonkeyPatch, failure: Exception | None = None, compares: str | None = None
) -> tuple[TaskDone, list[str]]:
    """Run a task of a writer, whose sending ends as given; return what it reports, and what it did."""
    fake = FakeWriter(failure)
    monkeypatch.setattr(writers, "task_writer", lambda *given: fake)
    monkeypatch.setattr(writers, "TaskContext", type("T", (), {"get": staticmethod(lambda: Context(compares))}))
    writer = pickle.loads(cloudpickle.dumps(batch_writer(OPTIONS, ROWS)))  # type: ignore[no-untyped-call]
    done = writer.write(iter([pa.RecordBatch.from_pydict({"__key": ["k"], "value": ["a"]})]))
    return done, fake.events


def test_a_task_that_wrote_all_its_rows_says_so(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    done, events = ran(monkeypatch)
    assert done == TaskDone(None)
    assert events == ["write {'key': ['k'], 'value': ['a']}", "send the rest", "await receipts, close"]
    see_that_all_is_written([TaskDone(None), TaskDone(None)], "it")


@pytest.mark.parametrize(
    "failure", [ConnectionLost("gone"), FrameTooLarge("a frame", "x", "y", size=9)], ids=["lost", "too large"]
)
def test_what_may_pass_fails_the_task_so_that_spark_runs_it_again(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], failure: Exception
) -> None:
    with pytest.raises(Unacknowledged, match="not all rows of Spark's partition 7 were acknowledged"):
        ran(monkeypatch, failure)


def test_an_error_that_is_not_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        ran(monkeypatch, ZeroDivisionError())


@pytest.mark.parametrize("kind", [InvalidInput, TopicMissing])
def test_what_no_other_run_would_change_is_reported_and_ends_the_save(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], kind: type[InvalidInput]
) -> None:
    done, events = ran(monkeypatch, kind("row 3 is wrong"))
    assert events[-1] == "abandon"
    writer = batch_writer(OPTIONS, ROWS)
    with pytest.raises(kind, match=r"row 3 is wrong\. Rows of this DataFrame that were sent before may be visible"):
        writer.commit([TaskDone(None), pickle.loads(pickle.dumps(done))])
    with pytest.raises(kind, match=r"Rows of batch 12 that were sent before may be visible"):
        stream_writer(OPTIONS, ROWS).commit([done], 12)


def test_a_task_without_a_report_ends_the_save() -> None:
    with pytest.raises(Unacknowledged, match="Not each task of it has reported its rows as written"):
        see_that_all_is_written([TaskDone(None), None], "it")


@pytest.mark.parametrize(("compares", "refused"), [("false", True), ("FALSE", True), ("true", False), (None, False)])
def test_where_spark_does_not_compare_shuffles_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], compares: str | None, refused: bool
) -> None:
    done, events = ran(monkeypatch, compares=compares)
    problem = done.problem
    assert (problem is not None, events == []) == (refused, refused)
    if problem is not None:
        assert "leave it at its default, true" in problem


@pytest.mark.parametrize(("compares", "refused"), [(None, True), ("false", True), ("true", False)])
def test_a_spark_that_does_not_compare_by_default_is_not_taken_for_one_that_does(
    monkeypatch: pytest.MonkeyPatch, asked: list[str], compares: str | None, refused: bool
) -> None:
    monkeypatch.setattr(capabilities, "installed", lambda: "4.1.4")
    done, events = ran(monkeypatch, compares=compares)
    assert (done.problem is not None, events == []) == (refused, refused)


def test_the_topic_is_asked_for_by_the_driver_and_not_again_to_end_a_micro_batch(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    assert stream_writer(OPTIONS, ROWS).partitions == {TOPIC: 3}
    assert asked == [TOPIC]
    monkeypatch.setattr(writers, "is_worker", lambda module: module == pyspark_api.ENDS_A_MICRO_BATCH)
    stream_writer(OPTIONS, ROWS).commit([TaskDone(None)], 1)
    assert asked == [TOPIC]


def test_a_cluster_out_of_reach_is_told_on_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def partitions(self: Client, topic: str) -> int:
        raise Unreachable("no connection")

    monkeypatch.setattr(Client, "partitions", partitions)
    with pytest.raises(InvalidInput, match=r"can't use pulsar://nowhere: no connection. Check the address"):
        batch_writer(OPTIONS, ROWS)


def test_a_failed_save_says_that_rows_may_be_visible(asked: list[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    batch_writer(OPTIONS, ROWS).abort([None])
    stream_writer(OPTIONS, ROWS).abort([None], 4)
    assert "the save failed. Rows of this DataFrame may be visible" in "\n".join(caplog.messages)
    assert "batch 4 failed: some of it may be visible" in "\n".join(caplog.messages)
