"""The executor side, without Spark around it: when it writes, what it reports, when it refuses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from eos.config import Cluster
from eos.delivery import task, task_failure
from eos.delivery.producers import FreshProducers
from eos.delivery.row_writer import BatchTransaction, WriteReport, WriteSettings
from eos.errors import (
    ConnectionLost,
    DamagedLog,
    FrameTooLarge,
    InvalidInput,
    NotCommitted,
    OutOfTurn,
    RefusedForGood,
    StaleBatch,
    TopicMissing,
)
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId

CLIENT = Client(Cluster("pulsar://nowhere"))
SETTINGS = WriteSettings("t", "murmur3", "none", 1 << 20)
CARRIER = task.new_carrier()
TRANSACTION = BatchTransaction(TxnId(0, 7), 3, {"t": 4}, {"persistent://public/default/t": 9})


@dataclass
class FakeContext:
    attempt: int = 0
    transaction: str | None = task.transaction_property(TRANSACTION)

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return self.transaction if name == CARRIER else None

    def attemptNumber(self) -> int:  # noqa: N802  Spark's name
        return self.attempt

    def stageId(self) -> int:  # noqa: N802
        return 11

    def partitionId(self) -> int:  # noqa: N802
        return 2


@dataclass
class FakeWriter:
    failure: Exception | None = None
    events: list[str] = field(default_factory=list)
    frame_limits: dict[str, int] = field(default_factory=dict)
    topics: set[str] = field(default_factory=lambda: {"t"})

    def write(self, batch: pa.RecordBatch) -> None:
        self.events.append(f"write {batch.num_rows}")
        if self.failure is not None:
            raise self.failure

    def send_rest(self) -> WriteReport:
        self.events.append("send the rest")
        return WriteReport({"t": 5}, {"t": 50}, {"t": 2})

    def finish(self) -> None:
        self.events.append("finish")

    def abandon(self) -> None:
        self.events.append("abandon")


def run(
    monkeypatch: pytest.MonkeyPatch,
    writer: FakeWriter,
    attempt: int = 0,
    transaction: BatchTransaction = TRANSACTION,
) -> list[dict[str, Any]]:
    given: list[Any] = []

    def made(*args: object) -> FakeWriter:
        given.extend(args)
        return writer

    context = FakeContext(attempt, task.transaction_property(transaction))
    monkeypatch.setattr("eos.delivery.task.TaskContext.get", staticmethod(lambda: context))
    monkeypatch.setattr(task, "RowWriter", made)
    rows = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
    summaries = [
        row for batch in task.writing_task(CLIENT, SETTINGS, CARRIER)([rows, rows]) for row in batch.to_pylist()
    ]
    settings, into, producers, partition, first_row = given
    assert (settings, into, partition, first_row) == (SETTINGS, transaction, 2, 0)
    assert type(producers) is FreshProducers, "a task's producers are closed before it reports"
    return summaries


def test_one_summary_comes_back_after_the_producers_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = FakeWriter()
    (summary,) = run(monkeypatch, writer)
    assert writer.events == ["write 2", "write 2", "send the rest", "finish"]
    assert (summary["stage"], summary["partition"], summary["problem"]) == (11, 2, None)
    assert task.parse_report(summary["report"]) == WriteReport({"t": 5}, {"t": 50}, {"t": 2})


def test_a_retried_task_refuses_before_it_opens_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = FakeWriter()
    with pytest.raises(NotCommitted, match="Attempt 1 of a writing task refuses"):
        run(monkeypatch, writer, attempt=1)
    assert writer.events == []


def test_a_retried_task_writes_all_its_rows_again_where_there_is_no_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first attempt may have written some of them: they are there twice, and none is lost."""
    writer = FakeWriter()
    plain = replace(TRANSACTION, txn=None)
    (summary,) = run(monkeypatch, writer, attempt=1, transaction=plain)
    assert writer.events == ["write 2", "write 2", "send the rest", "finish"]
    assert task.parse_report(summary["report"]).rows == {"t": 5}


def test_a_job_that_carries_no_transaction_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.delivery.task.TaskContext.get", staticmethod(lambda: FakeContext(transaction=None)))
    with pytest.raises(NotCommitted, match=f"lacks the local property '{CARRIER}'"):
        list(task.writing_task(CLIENT, SETTINGS, CARRIER)([]))


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (InvalidInput("row 1 is too large"), InvalidInput),
        (TopicMissing("the topic t does not exist"), TopicMissing),
        (RefusedForGood("open", "IncompatibleSchema", "no schema"), InvalidInput),
        (FrameTooLarge("send", "NotAllowedError", "too large"), NotCommitted),
        (NotCommitted("another driver is at work"), NotCommitted),
        (StaleBatch("the broker has rows of batch 8"), StaleBatch),
        (DamagedLog("it can't be known"), DamagedLog),
        (OutOfTurn("transaction: asked for 'send' while spoiled"), OutOfTurn),
    ],
)
def test_what_the_driver_must_know_reaches_it_as_a_row(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[Exception]
) -> None:
    writer = FakeWriter(failure)
    (summary,) = run(monkeypatch, writer)
    assert writer.events == ["write 2", "abandon"]
    problem, _ = task_failure.read(summary["problem"])
    assert type(problem) is kind
    assert str(problem) == f"in Spark's partition 2: {failure}"
    assert task.parse_report(summary["report"]) == WriteReport({"t": 0}), "frames may be on their way there"


def test_any_other_failure_fails_the_task_after_giving_up_the_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = FakeWriter(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost, match="gone"):
        run(monkeypatch, writer)
    assert writer.events == ["write 2", "abandon"]
