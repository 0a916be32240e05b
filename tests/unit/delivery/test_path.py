"""The driver's way of rows into a transaction, against a scripted broker. That of the tasks needs a Spark job."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from eos.delivery import row_writer
from eos.delivery.delivery import Delivery
from eos.delivery.path import DriverPath, TaskPath
from eos.delivery.producers import OpenProducers
from eos.delivery.row_writer import BatchTransaction, WriteSettings
from eos.delivery.task import new_carrier, transaction_property
from eos.delivery.task_failure import written
from eos.errors import InvalidInput, NetworkError, NotCommitted, Unanswered
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.producer import FrameLimits
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.topics import full_name
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import ServerError
from eos.pulsar.wire.txn import TxnId
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, receipt, refusing, silent
from tests.waiting import PATIENCE_S, until

MIB = 1 << 20
TXN, BATCH_ID = TxnId(0, 7), 3


@pytest.fixture
def path(broker: FakeBroker) -> Iterator[DriverPath]:
    """Three rows for two topics."""
    client = broker.client()
    rows = pa.table({"value": [b"a", b"b", b"c"], "topic": ["s", "t", "t"]})
    yield DriverPath(rows, WriteSettings(None, "murmur3", "none", MIB), OpenProducers(client, MIB), {})
    client.close()


def closed(broker: FakeBroker) -> set[int]:
    return {command.close_producer.producer_id for command in broker.commands(Type.CLOSE_PRODUCER)}


def test_it_is_finished_when_every_frame_has_its_receipt_and_not_before(broker: FakeBroker, path: DriverPath) -> None:
    """A driver that asks for the commit first may commit a batch that isn't whole."""
    held: list[tuple[Session, Frame]] = []
    broker.handlers[Type.SEND] = lambda session, frame: held.append((session, frame))
    assert path.send(TXN, BATCH_ID).rows == {full_name("s"): 1, full_name("t"): 2}
    finished = threading.Event()

    def finish() -> None:
        path.finish()
        finished.set()

    threading.Thread(target=finish, daemon=True).start()
    until(lambda: len(held) == 2, "two frames")
    for session, frame in held:
        assert not finished.wait(0.1)
        session.send(receipt(frame))
    assert finished.wait(PATIENCE_S)
    assert closed(broker) == set()


def test_a_receipt_that_does_not_come_fails_the_finish(
    broker: FakeBroker, path: DriverPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.handlers[Type.SEND] = lambda session, frame: None
    path.send(TXN, BATCH_ID)
    monkeypatch.setattr(InFlight, "patience", lambda *_: 0.0)
    with pytest.raises(Unanswered, match="no receipt for 1 frames"):
        path.finish()
    path.abandon()
    until(lambda: closed(broker) == {0, 1}, "a producer was left open")


def test_after_a_failed_send_its_producers_are_given_up(broker: FakeBroker, path: DriverPath) -> None:
    broker.handlers[Type.ADD_PARTITION_TO_TXN] = refusing(ServerError.InvalidTxnStatus)
    with pytest.raises(NetworkError, match="InvalidTxnStatus"):
        path.send(TXN, BATCH_ID)
    path.abandon()
    until(lambda: closed(broker) == {0, 1}, "a producer was left open")


@pytest.mark.parametrize("txn", [TXN, None])
def test_a_close_that_the_broker_does_not_confirm_is_told_in_a_transaction(
    broker: FakeBroker, path: DriverPath, monkeypatch: pytest.MonkeyPatch, txn: TxnId | None
) -> None:
    """An abort would not be remembered that comes before the first frame is stored. Without one nothing is aborted."""
    monkeypatch.setattr(row_writer, "PATIENCE_S", 0.1)
    for kind in (Type.SEND, Type.CLOSE_PRODUCER):
        broker.handlers[kind] = silent
    path.send(txn, BATCH_ID)
    assert path.abandon() == (set() if txn is None else {full_name("s"), full_name("t")})


def test_what_has_not_sent_has_nothing_to_finish_or_to_give_up(broker: FakeBroker, path: DriverPath) -> None:
    path.finish()
    path.abandon()
    assert broker.commands(Type.SEND) == []


def test_brokers_are_not_asked_again_for_partitions_that_the_driver_knows(broker: FakeBroker, path: DriverPath) -> None:
    for known in ({}, dict.fromkeys(map(full_name, "st"), 0)):
        path.partitions = known
        path.send(TXN, BATCH_ID)
        path.finish()
        asked = len(broker.commands(Type.PARTITIONED_METADATA))
        assert asked == 4, "for each topic of the first batch, to route its rows, and while its producer was new"


@pytest.mark.parametrize(("txn", "retries"), [(TXN, False), (None, True)])
def test_a_task_may_run_again_only_without_a_transaction(
    monkeypatch: pytest.MonkeyPatch, txn: TxnId | None, retries: bool
) -> None:
    proven: list[tuple[Any, ...]] = []
    monkeypatch.setattr("eos.spark.jobs.local_property", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr("eos.spark.stages.prove_run", lambda *given, retries: proven.append((*given, retries)))
    row = SimpleNamespace(stage=5, partition=0, problem=None, report='[{"t": 1}, {"t": 2}, {"t": 1}]')
    job: Any = SimpleNamespace(sparkSession="session", collect=lambda: [row])
    client: Any = SimpleNamespace(frame_limits=FrameLimits())
    by_tasks = TaskPath(job, client, {"t": 1}, "carrier", {"t"})
    assert by_tasks.abandon() == set(), "no task has begun"
    assert by_tasks.send(txn, BATCH_ID).rows == {"t": 1}
    assert by_tasks.abandon() == {"t-partition-0"}, "a task of another attempt of the stage may be sending"
    by_tasks.finish()
    assert by_tasks.abandon() == set()
    assert proven == [("session", [5], [0], retries)]


def test_topics_that_tasks_report_are_known_though_one_of_them_has_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.spark.jobs.local_property", lambda *_: contextlib.nullcontext())
    problem = written(InvalidInput("a bad row"), 0, {})
    rows = [
        SimpleNamespace(stage=5, partition=0, problem=problem, report='[{"s": 0}, {}, {}]'),
        SimpleNamespace(stage=5, partition=1, problem=None, report='[{"t": 1}, {"t": 2}, {"t": 1}]'),
    ]
    answers: Iterator[list[Any]] = iter([rows])
    job: Any = SimpleNamespace(sparkSession=None, collect=lambda: next(answers))
    client: Any = SimpleNamespace(partitions=lambda topic: 0, frame_limits=FrameLimits())
    by_tasks = TaskPath(job, client, {"u": 2}, "carrier", {"u"}, names_topics=True)
    with pytest.raises(InvalidInput, match="a bad row"):
        by_tasks.send(TXN, BATCH_ID)
    assert by_tasks.abandon() == {"s", "t", "u-partition-0", "u-partition-1"}
    assert not by_tasks.may_send_elsewhere
    with pytest.raises(StopIteration):
        by_tasks.send(TXN, BATCH_ID)
    assert by_tasks.may_send_elsewhere, "tasks of the second job have told nothing"


def test_the_frame_limits_that_any_task_reports_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.spark.jobs.local_property", lambda *_: contextlib.nullcontext())
    problems = [written(NotCommitted(f"frame to {topic}"), 0, {full_name(topic): 9}) for topic in "st"]
    rows = [SimpleNamespace(stage=5, partition=0, problem=one, report="[{}, {}, {}]") for one in problems]
    job: Any = SimpleNamespace(sparkSession=None, collect=lambda: rows)
    client: Any = SimpleNamespace(frame_limits=FrameLimits())
    with pytest.raises(NotCommitted, match="frame to s"):
        TaskPath(job, client, {}, "carrier", ()).send(TXN, BATCH_ID)
    assert client.frame_limits.learned == {full_name("s"): 9, full_name("t"): 9}


def test_threads_that_share_their_properties_give_each_job_its_own_transaction() -> None:
    """As threads do that run one function of `pyspark.inheritable_thread_target`, for two sinks or two jobs."""
    properties: dict[str, str | None] = {}
    session = SimpleNamespace(sparkContext=SimpleNamespace(setLocalProperty=properties.__setitem__))
    row = SimpleNamespace(stage=5, partition=0, problem=None, report="[{}, {}, {}]")
    counts, learned, seen = {"t": 4}, {full_name("t"): 9}, list[list[str | None]]()
    client: Any = SimpleNamespace(frame_limits=FrameLimits())
    client.frame_limits.learn(learned)

    def job(meanwhile: Callable[[], object]) -> Any:
        def collect() -> list[Any]:
            meanwhile()
            return [row]

        return SimpleNamespace(sparkSession=session, collect=collect)

    second = TaskPath(job(lambda: seen.append([*properties.values()])), client, counts, new_carrier(), ())
    first = TaskPath(job(lambda: second.send(TxnId(0, 8), BATCH_ID)), client, counts, new_carrier(), ())
    first.send(TXN, BATCH_ID)
    transactions = [BatchTransaction(txn, BATCH_ID, counts, learned) for txn in (TXN, TxnId(0, 8))]
    assert seen == [[*map(transaction_property, transactions)]]
    settings = WriteSettings("t", "murmur3", "none", MIB)
    assert len({Delivery(cast(Any, None), settings, 0)._carrier for _ in range(3)}) == 3
