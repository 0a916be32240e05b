"""What `sink.batch` refuses, without Spark and without a broker around it."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any, ClassVar

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import eos
from eos.commit.decision import Identity
from eos.errors import (
    CommitUnknown,
    ConnectionLost,
    Fenced,
    InvalidInput,
    NotCommitted,
    RefusedForGood,
    ReplayFailed,
)
from eos.metrics.batch import FinishedBatch, LiveSink
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.pulsar_pb2 import ServerError
from eos.sinks import shared_run
from eos.sinks.sink import Sink
from eos.sinks.write_plan import WritePlan
from eos.steps import Step
from tests.unit.pulsar.net.fake_broker import FakeBroker, free_port, refusing
from tests.unit.sinks.fakes import ROWS, FakeQuery, FakeRun
from tests.waiting import PATIENCE_S, until


def identity(batch_id: int, run: str = "run") -> Identity:
    return Identity("query", run, f"offsets {batch_id}")


def write(sink: Sink, batch_id: int, run: str = "run") -> None:
    with sink.batch(batch_id, identity(batch_id, run)) as txn:
        txn.write(ROWS)


def raise_in_block(sink: Sink, batch_id: int) -> None:
    with pytest.raises(LookupError), sink.batch(batch_id, identity(batch_id)):
        raise LookupError


def test_a_write_after_the_block_is_refused(sink: Sink) -> None:
    with sink.batch(0, identity(0)) as txn:
        txn.write(ROWS)
        txn.write(ROWS)
    with pytest.raises(InvalidInput, match=r"after the block of batch 0 had ended\. These rows are not written"):
        txn.write(ROWS)
    assert FakeRun.made[0].taken == [(0, 2)]


def test_a_write_after_a_block_that_failed_is_refused(sink: Sink) -> None:
    with pytest.raises(LookupError), sink.batch(0, identity(0)) as txn:
        raise LookupError
    with pytest.raises(InvalidInput, match="after the block"):
        txn.write(ROWS)


@pytest.mark.parametrize("in_block", [True, False])
def test_no_batch_is_taken_after_one_that_failed(sink: Sink, monkeypatch: pytest.MonkeyPatch, in_block: bool) -> None:
    """User code has swallowed the failure: the hole would be for ever."""
    write(sink, 0)
    monkeypatch.setattr(FakeRun, "fails", frozenset({1}))
    if in_block:
        raise_in_block(sink, 1)
    else:
        with pytest.raises(NotCommitted):
            write(sink, 1)
    monkeypatch.setattr(FakeRun, "fails", frozenset())
    for later in (2, 3, 5):
        with pytest.raises(
            InvalidInput, match=f"Batch {later} is not written: batch 1 failed in this run.*Call .* again"
        ):
            write(sink, later)
    write(sink, 1)
    write(sink, 2)
    assert [batch for batch, _ in FakeRun.made[0].taken] == [0, 1, 2]


_AGAIN = r"Call the sink again for batch 1, and then for the batches after it\."
_ANEW = "Give the eos.Identity of the next batches another run_id"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            NotCommitted("aborted"),
            rf"batch 1 failed in this run, so batch 1 would be missing from the output\. The error was: aborted\. "
            rf"{_AGAIN} Or give the rows up, and go on in a new run\. {_ANEW}, after `eos sink skip s --batch 1`\.$",
        ),
        (
            ReplayFailed("no memory."),
            rf"batch 1 is committed, and Spark could not run it again\. The error was: no memory\. {_AGAIN}$",
        ),
    ],
)
def test_a_hole_outside_a_query_is_for_the_caller_to_fill(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    """There is no checkpoint whose files could be deleted, and no query that hands the batch over again."""

    def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(FakeRun, "take", fail)
    with pytest.raises(type(error)):
        write(sink, 1)
    with pytest.raises(InvalidInput, match=told) as refused:
        write(sink, 2)
    assert "checkpoint" not in str(refused.value)


def test_a_second_call_that_failed_outside_a_query_is_told_without_a_checkpoint(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(sink, 1)
    monkeypatch.setattr(FakeRun, "fails", frozenset({1}))
    with pytest.raises(NotCommitted):
        write(sink, 1)
    told = rf"a second call for batch 1.* failed\. The error was: five tries failed\. .* in a new run\. {_ANEW}\.$"
    with pytest.raises(InvalidInput, match=told):
        write(sink, 2)
    write(sink, 2, "another run")


@pytest.mark.parametrize(
    ("batch_id", "given", "told"),
    [
        (-1, identity(0), r"batch_id=-1 is negative\. Batches are numbered from 0"),
        ("1", identity(0), "batch_id='1' is str"),
        (0, "x", r"identity= is str\. It must be an eos\.Identity\(query_id, run_id, offsets\)"),
        (0, {"query_id": "q"}, "identity= is dict"),
        (0, Identity("q", "r", {"file": 3}), "offsets of the eos.Identity of batch 0 is dict"),  # type: ignore[arg-type]
        (0, Identity("q", "r", None), "offsets of .* is NoneType"),  # type: ignore[arg-type]
        (0, Identity("q", None, "o"), "run_id of .* is NoneType"),  # type: ignore[arg-type]
        (0, Identity(7, "r", "o"), "query_id of .* is int"),  # type: ignore[arg-type]
        (0, Identity("q", "r", "o", 7), "principal of .* is int"),  # type: ignore[arg-type]
    ],
)
def test_a_batch_that_is_named_wrongly_is_refused_before_anything_is_done(
    sink: Sink, batch_id: Any, given: Any, told: str
) -> None:
    with pytest.raises(InvalidInput, match=told), sink.batch(batch_id, given) as txn:
        txn.write(ROWS)
    assert FakeRun.made == []
    write(sink, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        Identity(7, "run", "o"),  # type: ignore[arg-type]
        Identity("query", "run", {"file": 3}),  # type: ignore[arg-type]
        Identity("query", "run", "o", 7),  # type: ignore[arg-type]
    ],
)
def test_a_batch_whose_identity_was_refused_is_missing_in_the_run_that_it_names(sink: Sink, wrong: Identity) -> None:
    write(sink, 0)
    with pytest.raises(InvalidInput, match="must be a text"), sink.batch(1, wrong) as txn:
        txn.write(ROWS)
    with pytest.raises(
        InvalidInput, match=r"batch 1 failed in this run, so batch 1 would be missing .* must be a text"
    ):
        write(sink, 2)
    write(sink, 1)
    write(sink, 2)
    assert [batch for batch, _ in FakeRun.made[0].taken] == [0, 1, 2]


@pytest.mark.parametrize("error", [Py4JError("no gateway"), PySparkException("no file")])
def test_what_spark_says_before_a_run_has_begun_leaves_as_an_error_of_the_sink(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(shared_run, "begin", fail)
    with pytest.raises(CommitUnknown, match="before the control log was asked") as caught:
        write(sink, 1)
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


@pytest.mark.parametrize("asks", ["write", "begin"])
def test_what_the_network_knows_before_a_run_has_begun_leaves_as_an_error_of_the_sink(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    def fail(*given: object) -> None:
        raise ConnectionLost("ask for the partitions of t: the connection is gone")

    def refuse(*given: object) -> None:
        raise RefusedForGood("ask for the partitions of t", "AuthorizationError", "no")

    where: Any = WritePlan if asks == "write" else shared_run
    monkeypatch.setattr(where, asks, fail)
    with pytest.raises(CommitUnknown, match=r"^Batch 1: a question to the brokers failed .*connection is gone\. This"):
        write(sink, 1)
    monkeypatch.setattr(where, asks, refuse)
    with pytest.raises(RefusedForGood, match="AuthorizationError"):
        write(sink, 1)


def test_a_driver_that_was_thrown_out_is_told_so_each_time(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    def fenced(*given: object) -> None:
        raise Fenced("another driver owns the sink")

    monkeypatch.setattr(FakeRun, "take", fenced)
    for batch_id in (1, 1, 2):
        with pytest.raises(Fenced):
            write(sink, batch_id)


def test_a_new_run_begins_where_spark_begins(sink: Sink) -> None:
    """Another driver may have gone on meanwhile: the control log tells."""
    raise_in_block(sink, 1)
    write(sink, 4, run="the next run")
    write(sink, 5, run="the next run")
    assert [run.run_id for run in FakeRun.made] == ["the next run"]


def test_a_new_run_closes_the_one_before(sink: Sink) -> None:
    write(sink, 0)
    write(sink, 1, run="the next run")
    assert [run.closed.is_set() for run in FakeRun.made] == [True, False]


def test_a_sink_that_is_dropped_closes_its_run(monkeypatch: pytest.MonkeyPatch, sink: Sink) -> None:
    other = eos.sink("pulsar://nowhere", topic="t", name="dropped")
    write(other, 0)
    (run,) = FakeRun.made
    del other
    gc.collect()
    until(run.closed.is_set, "the run was left open")


def test_a_sink_that_is_closed_after_each_batch_keeps_none_of_its_runs(sink: Sink) -> None:
    """A run has producers, a thousand markers and the topics' schemas. A sink may be closed for each hour's batch."""
    write(sink, 0)
    run = weakref.ref(FakeRun.made.pop())
    sink.close()
    write(sink, 1)
    gc.collect()
    assert run() is None


def test_a_run_is_closed_when_its_query_has_ended(monkeypatch: pytest.MonkeyPatch, sink: Sink) -> None:
    query = FakeQuery()
    monkeypatch.setattr("eos.spark.query.current_query", lambda session, known=None: query)
    sink(ROWS, 0)
    (run,) = FakeRun.made
    assert not run.closed.wait(0.1)
    query.ended.set()
    assert run.closed.wait(PATIENCE_S)


def test_a_call_in_another_thread_than_foreachbatchs_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, sink: Sink
) -> None:
    monkeypatch.setattr("eos.spark.query.current_query", lambda session, known=None: None)
    monkeypatch.setattr("eos.spark.query.query_of", lambda session, query_id: None)
    with pytest.raises(InvalidInput, match=r"Call it there, and not in a thread of your own\. Only where no"):
        sink(ROWS, 0)


def test_closing_waits_for_the_batch_that_is_being_taken(sink: Sink) -> None:
    """The thread that waits for a query's end closes too, and both would go through the producers at once."""
    write(sink, 0)
    with sink.batch(1, identity(1)) as txn:
        txn.write(ROWS)
        closing = threading.Thread(target=sink.close)
        closing.start()
        assert not FakeRun.made[0].closed.wait(0.2)
    closing.join(PATIENCE_S)
    assert FakeRun.made[0].closed.is_set()


def test_an_observer_is_told_of_each_batch_and_fails_none(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told when the batch was taken, with what is known of it; what it raises does not reach the query."""
    told: list[tuple[int, str, str | None, str | None, int]] = []

    def observe(batch: FinishedBatch) -> None:
        told.append((batch.batch_id, batch.outcome, batch.error, batch.query_id, len(FakeRun.made[0].taken)))
        raise OSError("no collector")

    other = eos.sink("pulsar://nowhere", topic="t", name="watched", metrics=observe)
    write(other, 0)
    monkeypatch.setattr(FakeRun, "fails", frozenset({1}))
    with pytest.raises(NotCommitted):
        write(other, 1)
    monkeypatch.setattr(FakeRun, "fails", frozenset())
    raise_in_block(other, 1)
    assert told == [
        (0, "replayed", None, "query", 1),
        (1, "failed", "NotCommitted", "query", 1),
        (1, "failed", "LookupError", None, 1),
    ]


def test_a_watcher_sees_the_sink_for_as_long_as_it_lives(sink: Sink) -> None:
    class Watcher:
        sinks: ClassVar[weakref.WeakSet[LiveSink]] = weakref.WeakSet()

        def __call__(self, batch: FinishedBatch) -> None: ...

        def watch(self, sink: LiveSink) -> None:
            self.sinks.add(sink)

    other = eos.sink("pulsar://nowhere", topic="t", name="watched", metrics=Watcher())
    (live,) = Watcher.sinks
    assert (live.name, live.job, live.open_transaction_s()) == ("watched", False, None)
    other._context.metrics.see(Step.OPEN, "after")
    assert live.open_transaction_s() is not None
    del live, other
    gc.collect()
    assert not Watcher.sinks


# ---- what a sink says when it is made


def test_a_bad_token_is_told_as_such_and_not_as_a_bad_address(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = refusing(ServerError.AuthenticationError, "Failed to authenticate")
    with pytest.raises(
        eos.InvalidInput, match=r"does not accept the credentials.* options token, basic or oauth2"
    ) as caught:
        eos.sink(broker.url, topic="t", name="flights", token="wrong-s3cret")
    assert "Check the address" not in str(caught.value)
    assert "wrong-s3cret" not in str(caught.value)


def test_a_sink_without_transactions_asks_for_no_coordinator(broker: FakeBroker) -> None:
    eos.sink(broker.url, name="flights", guarantee="at-least-once")
    assert broker.commands(Type.CONNECT)
    assert not broker.commands(Type.PARTITIONED_METADATA)


def test_the_address_of_the_admin_api_is_told_as_such(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = lambda session, _: session._socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(eos.InvalidInput, match=rf"{broker.url} is not a Pulsar broker \(it answers in HTTP"):
        eos.sink(broker.url, topic="t", name="flights")


def test_an_admin_url_out_of_reach_is_named(broker: FakeBroker) -> None:
    with free_port() as port:
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(eos.InvalidInput, match=rf'The sink can\'t use admin_url="{url}": '):
            eos.sink(broker.url, topic="t", name="flights", admin_url=url)
