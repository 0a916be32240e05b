"""The writers by name, without Spark and brokers around them: what a task reports, and what ends a save."""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StringType, StructType

from eos.by_name import writers
from eos.by_name.columns import columns_of
from eos.by_name.options import parse_write_options
from eos.by_name.writers import (
    PartitionWriter,
    TaskDone,
    batch_writer,
    see_that_all_is_written,
    stream_writer,
)
from eos.delivery.row_writer import WriteReport, WriteSettings
from eos.errors import ConnectionLost, FrameTooLarge, InvalidInput, TopicMissing, Unacknowledged, Unreachable
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.batch import unpack
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandSendError, ServerError
from eos.spark import capabilities, pyspark_api
from eos.spark.stages import COMPARES_SHUFFLES
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, partitioned, receipt

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


def in_a_task(monkeypatch: pytest.MonkeyPatch, compares: str | None = None) -> None:
    monkeypatch.setattr(writers, "TaskContext", type("T", (), {"get": staticmethod(lambda: Context(compares))}))


def ran(
    monkeypatch: pytest.MonkeyPatch, failure: Exception | None = None, compares: str | None = None
) -> tuple[TaskDone, list[str]]:
    """Run a task of a writer, whose sending ends as given; return what it reports, and what it did."""
    fake = FakeWriter(failure)
    monkeypatch.setattr(writers, "task_writer", lambda *given: fake)
    in_a_task(monkeypatch, compares)
    writer = pickle.loads(cloudpickle.dumps(batch_writer(OPTIONS, ROWS)))  # type: ignore[no-untyped-call]
    done = writer.write(iter([pa.RecordBatch.from_pydict({"__key": ["k"], "value": ["a"]})]))
    return done, fake.events


def test_a_task_that_wrote_all_its_rows_says_so(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    done, events = ran(monkeypatch)
    assert done == TaskDone(None)
    assert events == ["write {'key': ['k'], 'value': ['a']}", "send the rest", "await receipts, close"]
    see_that_all_is_written([TaskDone(None), TaskDone(None)], "it")


def test_what_may_pass_fails_the_task_so_that_spark_runs_it_again(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    with pytest.raises(Unacknowledged, match="not all rows of Spark's partition 7 were acknowledged"):
        ran(monkeypatch, ConnectionLost("gone"))


def test_a_refusal_that_teaches_nothing_ends_the_save(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    """As where chunks of a byte are too large: another run would be refused as well."""
    done, events = ran(monkeypatch, FrameTooLarge("a frame", "x", "y", size=9))
    assert events.count("abandon") == 1
    with pytest.raises(Unacknowledged, match="some may be visible"):
        see_that_all_is_written([done], "it")


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
    with pytest.raises(InvalidInput, match=r"can't use pulsar://nowhere: no connection\.$"):
        batch_writer(OPTIONS, ROWS)


def test_a_failed_save_says_that_rows_may_be_visible(asked: list[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    batch_writer(OPTIONS, ROWS).abort([None])
    stream_writer(OPTIONS, ROWS).abort([None], 4)
    assert "the save failed. Rows of this DataFrame may be visible" in "\n".join(caplog.messages)
    assert "batch 4 failed: some of it may be visible" in "\n".join(caplog.messages)


LIMIT = 2_000
VALUES = [f"{number:05d}-".ljust(100, "x") for number in range(1_000)]


class Policy:
    """A topic that takes frames of a size only, once it has stored so many.

    Attributes:
        stored: the values in frames that it took, in order.
    """

    def __init__(self, broker: FakeBroker, limit: int = LIMIT, after: int = 0) -> None:
        self.stored: list[str] = []
        self._limit, self._left = limit, after
        broker.handlers[Type.SEND] = self._take

    def _take(self, session: Session, frame: Frame) -> None:
        send, entries = frame.command.send, list(frame.entries)
        self._left -= 1
        if self._left < 0 and sum(len(one.packed) for one in entries) > self._limit:
            code, last = ServerError.NotAllowedError, send.highest_sequence_id or send.sequence_id
            error = CommandSendError(producer_id=send.producer_id, sequence_id=last, error=code)
            error.message = "Exceed maximum message size"
            session.send(BaseCommand(type=Type.SEND_ERROR, send_error=error))
            return
        self.stored += [value.decode() for one in entries for _, value in unpack(one.metadata, one.packed)]
        session.send(receipt(frame))


def write(
    monkeypatch: pytest.MonkeyPatch, client: Client, max_in_flight_bytes: int = 32 << 20, values: Any = VALUES
) -> TaskDone:
    in_a_task(monkeypatch)
    settings = WriteSettings(TOPIC, "murmur3", "none", max_in_flight_bytes)
    columns = columns_of(StructType().add("value", StringType()), "raw", topic=TOPIC, named={})
    batches = [pa.RecordBatch.from_pydict({"value": values[at : at + 50]}) for at in range(0, len(values), 50)]
    return PartitionWriter(client, settings, columns, {TOPIC: 0}).write(iter(batches))


def test_a_topic_that_takes_smaller_frames_gets_them_within_the_task(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark runs a task again in a process that has learned nothing, and in local mode not at all."""
    policy = Policy(broker)
    assert write(monkeypatch, client) == TaskDone(None)
    assert policy.stored == VALUES, "nothing was taken of the frames that were too large"


def test_rows_with_receipts_are_not_sent_again_in_smaller_frames(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a policy begins to be in force meanwhile."""
    policy = Policy(broker, after=8)
    assert write(monkeypatch, client, 20_000) == TaskDone(None)
    found = Counter(policy.stored)
    assert sorted(found) == VALUES
    assert {found[value] for value in VALUES[:200]} == {1}


def test_several_topics_that_take_smaller_frames_lack_no_row(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal names one topic. How often the rows of the others are repeated depends on when it comes."""
    policy = Policy(broker)
    broker.handlers[Type.PARTITIONED_METADATA] = partitioned(0)
    in_a_task(monkeypatch)
    topics = [f"{TOPIC}{number}" for number in range(4)]
    columns = columns_of(
        StructType().add("__topic", StringType()).add("value", StringType()), "raw", topic=None, named={}
    )
    small = [(topic, f"{topic} is small") for topic in topics]
    large = [(topic, f"{topic} {value}") for topic in topics for value in VALUES[:100]]
    batches = [
        pa.RecordBatch.from_pydict({"__topic": [topic for topic, _ in rows], "value": [value for _, value in rows]})
        for rows in (small, *(large[at : at + 100] for at in range(0, 400, 100)))
    ]
    settings = WriteSettings(None, "murmur3", "none", 60_000)
    assert PartitionWriter(client, settings, columns, dict.fromkeys(topics, 0)).write(iter(batches)) == TaskDone(None)
    found = Counter(policy.stored)
    assert found.keys() == {value for _, value in small + large}
    assert min(found[value] for _, value in small) > 1, "they were accepted before the first refusal"


def test_a_row_after_the_smaller_frames_has_its_own_number(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    Policy(broker, after=8)
    problem = write(monkeypatch, client, 20_000, [*VALUES, "x" * (6 << 20)]).problem
    assert problem is not None
    assert "row 1000 makes a message of" in problem


def test_a_message_that_is_too_large_alone_is_told_with_the_policy(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    Policy(broker, limit=50)
    problem = write(monkeypatch, client).problem
    assert problem is not None
    assert "is more than the topic allows" in problem
    assert f"set-max-message-size --max-message-size BYTES {TOPIC}" in problem


def test_a_topic_that_was_made_again_before_a_refusal_has_lost_rows_that_are_not_held_any_more(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    Policy(broker, after=8)
    counts = iter([partitioned(4)])
    well = partitioned(0)
    broker.handlers[Type.PARTITIONED_METADATA] = lambda session, frame: next(counts, well)(session, frame)
    problem = write(monkeypatch, client, 20_000).problem
    assert problem is not None
    assert "It was deleted and made again meanwhile" in problem
