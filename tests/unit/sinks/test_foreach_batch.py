"""How batch functions call a sink: a wrong call, swallowed or not, is noted as the failure of the batch in hand."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import Any, cast

import pytest
from py4j.java_gateway import JavaGateway
from pyspark import SparkContext

import eos
from eos.commit.registration import REGISTRATION, Registration
from eos.delivery.delivery import Write
from eos.delivery.row_writer import WriteReport
from eos.errors import CommitUnknown, ConnectionLost, InvalidInput
from eos.metrics.batch import FinishedBatch
from eos.metrics.observers import ObserverNotifier
from eos.sinks.write_plan import WritePlan
from tests.unit.sinks.fakes import COLLECTED, ROWS, STREAMED, FakeQuery, FakeRun, expect_failed, in_a_thread


def refuse_bad(sink: WritePlan, df: Any, topic: str | None) -> Write:
    """Plan all writes but those to the topic "bad", and to one that no broker answers for."""
    if topic == "bad":
        raise InvalidInput("the columns are wrong")
    if topic == "away":
        raise ConnectionLost("the connection is gone")
    return Write(df, topic)


# ---- the id of the batch


@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize("given", [0, 2])
def test_an_id_that_is_not_sparks_is_refused_and_noted_for_the_batch_in_hand(
    sink: eos.Sink, query: FakeQuery, given: int, in_block: bool
) -> None:
    """Else the rows would be skipped as a replay of a batch that has this id, in each run."""
    query.in_hand = 1
    with suppress(InvalidInput):
        if in_block:
            with sink.batch(given) as txn:
                txn.write(ROWS)
        else:
            sink(ROWS, given)
    expect_failed(query, 1, f"called with batch_id={given}, and Spark runs batch 1 of the query")
    assert FakeRun.made == []


@pytest.mark.parametrize("given", ["1", True, 1.0, None])
def test_an_id_of_another_type_is_noted_too(sink: eos.Sink, query: FakeQuery, given: Any) -> None:
    query.in_hand = 1
    with suppress(InvalidInput):
        sink(ROWS, given)
    expect_failed(query, 1, f"batch_id={given!r} is {type(given).__name__}. It must be the int that Spark gives")


def test_the_batch_is_written_after_all_with_its_own_id(sink: eos.Sink, query: FakeQuery) -> None:
    query.in_hand = 1
    for given in ("1", 0):
        with suppress(InvalidInput):
            sink(ROWS, given)  # type: ignore[arg-type]
    sink(ROWS, 1)
    assert (query.failed, query.ends_with, FakeRun.made[0].taken) == (None, None, [(1, 1)])


# ---- a write of a block that fails


@pytest.fixture
def bad(sink: eos.Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the plan refuse what goes to the topic "bad"."""
    monkeypatch.setattr(WritePlan, "write", refuse_bad)


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize("by_thread", [True, False])
@pytest.mark.parametrize(("topic", "kind"), [("bad", InvalidInput), ("away", CommitUnknown)])
def test_a_write_whose_error_the_block_swallows_fails_the_batch(
    sink: eos.Sink, query: FakeQuery, topic: str, kind: type[eos.EosError], by_thread: bool
) -> None:
    words = r"A txn\.write\(\) of the block of batch 0 failed, and .* nothing of it is written\. .* (wrong|is gone)"

    def call() -> None:
        with sink.batch(0) as txn:
            txn.write(ROWS)
            if by_thread:
                in_a_thread(lambda: txn.write(ROWS, topic))
            else:
                with suppress(eos.EosError):
                    txn.write(ROWS, topic)
            txn.write(ROWS)

    with pytest.raises(kind, match=words):
        call()
    expect_failed(query, 0, "A txn.write() of the block of batch 0 failed")
    assert FakeRun.made == []


def test_a_write_that_is_planned_when_its_block_ends_fails_the_batch(
    sink: eos.Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of the block that the block does not wait for: its rows are in none of the two lists."""
    begun, ended = threading.Event(), threading.Event()

    def plan(sink: WritePlan, df: Any, topic: str | None) -> Write:
        if topic == "slow":
            begun.set()
            ended.wait()
        return Write(df, topic)

    def take(run: FakeRun, *given: Any) -> None:
        ended.set()
        thread.join()

    monkeypatch.setattr(WritePlan, "write", plan)
    monkeypatch.setattr(FakeRun, "take", take)
    with suppress(InvalidInput), sink.batch(0) as txn:
        txn.write(ROWS)
        thread = threading.Thread(target=lambda: in_a_thread(lambda: txn.write(ROWS, "slow")))
        thread.start()
        begun.wait()
    expect_failed(query, 0, "after the block of batch 0 had ended. These rows are not written")
    assert query.failed is not None
    assert query.failed.partly


@pytest.mark.parametrize("by_thread", [True, False])
def test_a_write_after_its_batch_was_written_is_noted(sink: eos.Sink, query: FakeQuery, by_thread: bool) -> None:
    with sink.batch(0) as txn:
        txn.write(ROWS)
    query.in_hand = 1
    sink(ROWS, 1)
    if by_thread:
        in_a_thread(lambda: txn.write(ROWS))
    else:
        with suppress(InvalidInput):
            txn.write(ROWS)
    expect_failed(query, 0, "These rows are not written")
    assert query.failed is not None
    assert query.failed.partly


# ---- threads


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize("rows", [STREAMED, COLLECTED])
@pytest.mark.parametrize("topic", ["bad", "away", None])
def test_whatever_fails_in_a_thread_ends_the_query_after_the_batch(
    sink: eos.Sink, query: FakeQuery, rows: Any, topic: str | None
) -> None:
    """By the session of the rows; the application's own tells nothing, and the query with a batch in hand is it."""
    query.in_hand = 4

    def call() -> None:
        with sink.batch(3) as txn:
            txn.write(rows, topic)

    in_a_thread(call)
    expect_failed(query, 3, {"bad": "are wrong", "away": "is gone", None: "not called in the thread"}[topic])
    assert query.ends_after_batch


def test_what_is_wrong_before_any_write_in_a_thread_ends_the_query(sink: eos.Sink, query: FakeQuery) -> None:
    def nothing() -> None:
        with sink.batch(0):
            pass

    in_a_thread(nothing)
    expect_failed(query, 0, "has no txn.write()")
    in_a_thread(lambda: sink(COLLECTED, cast(Any, "0")))
    assert query.ends_after_batch


def test_each_query_that_may_have_lost_the_rows_ends_but_no_other(
    sink: eos.Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_another_sink, own = FakeQuery(run_id="another"), FakeQuery(run_id="own")
    of_another_sink.files[REGISTRATION] = Registration("another", "topic", 0).text
    own.files[REGISTRATION] = Registration("s", "topic", 0).text
    monkeypatch.setattr("eos.spark.query.foreach_batch_queries", lambda session: [query, of_another_sink, own])
    in_a_thread(lambda: sink(COLLECTED, 0))
    assert [one.ends_after_batch for one in (query, of_another_sink, own)] == [True, False, True]
    own.ended.set()


@pytest.mark.parametrize("called", [True, False])
def test_a_query_that_waits_for_its_next_batch_ends_if_it_has_called_the_sink(
    sink: eos.Sink, query: FakeQuery, called: bool
) -> None:
    """A thread of the batch function may be late. A query that never used such a sink has lost nothing."""
    if called:
        sink(ROWS, 0)
    query.waits = True
    in_a_thread(lambda: sink(COLLECTED, 0))
    assert query.ends_after_batch == called
    assert (query.failed is not None) == called


def test_a_call_in_the_main_thread_outside_of_a_query_ends_none(
    sink: eos.Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A cell of a notebook beside queries that run."""
    monkeypatch.setattr("eos.spark.query.current_query", lambda session=None, known=None: None)
    with caplog.at_level(logging.ERROR, "eos.sink"), pytest.raises(InvalidInput, match="not called in the thread"):
        sink(COLLECTED, 0)
    assert (query.ends_with, query.failed) == (None, None)
    assert "Batch 0 failed outside of the thread of a query. No query was found" in caplog.text


@pytest.mark.parametrize("rows", [STREAMED, COLLECTED])
@pytest.mark.parametrize("named", [3, 4])
def test_a_call_that_fails_in_a_thread_while_the_batch_is_written_is_noted(
    sink: eos.Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch, rows: Any, named: int
) -> None:
    """Its rows are in no batch, be it the one in hand or, of a thread that is late, the one before."""
    for query.in_hand in (2, 3):
        sink(ROWS, query.in_hand)
    query.in_hand = 4
    monkeypatch.setattr(FakeRun, "take", lambda *given: in_a_thread(lambda: sink(rows, named)))
    sink(ROWS, 4)
    expect_failed(query, named, "not called in the thread")
    assert (query.failed is not None and query.failed.partly, query.ends_after_batch) == (True, True)


def test_a_call_that_fails_in_a_thread_is_made_good_by_a_batch_with_its_rows(
    sink: eos.Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeRun, "take", lambda *given: in_a_thread(lambda: sink(STREAMED, 0)))
    sink(STREAMED, 0)
    assert (query.failed, query.ends_with) == (None, None)


def test_a_call_that_is_refused_in_a_thread_takes_nothing_from_the_report_of_the_batch_in_hand(
    sink: eos.Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[FinishedBatch] = []

    def take(run: FakeRun, *given: Any) -> None:
        in_a_thread(lambda: sink(STREAMED, 0))
        sink._context.metrics.committed(WriteReport(rows={"t": 1}), {})

    monkeypatch.setattr(FakeRun, "take", take)
    monkeypatch.setattr(sink._context, "_notifier", ObserverNotifier(told.append))
    sink(ROWS, 0)
    assert [(one.outcome, one.run_id, dict(one.rows)) for one in told] == [
        ("failed", None, {}),
        ("committed", query.run_id, {"t": 1}),
    ]


def test_threads_that_are_not_pinned_are_named(
    sink: eos.Sink, query: FakeQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", JavaGateway.__new__(JavaGateway))
    in_a_thread(lambda: sink(STREAMED, 0))
    expect_failed(query, 0, "Unset the environment variable PYSPARK_PIN_THREAD")


# ---- identity= within a query


@pytest.mark.parametrize("rows", [ROWS, STREAMED, COLLECTED])
def test_an_identity_is_refused_in_the_batch_function(sink: eos.Sink, query: FakeQuery, rows: Any) -> None:
    with suppress(InvalidInput), sink.batch(0, eos.Identity("job", "run 1", "facts")) as txn:
        txn.write(rows)
    expect_failed(query, 0, "was given identity= in foreachBatch")
    assert FakeRun.made == []


@pytest.mark.parametrize(("rows", "owner"), [(STREAMED, "job"), (COLLECTED, "query")])
def test_an_identity_is_refused_in_a_thread_for_rows_and_for_the_id_of_a_query(
    sink: eos.Sink, query: FakeQuery, rows: Any, owner: str
) -> None:
    def call() -> None:
        with sink.batch(0, eos.Identity(owner, "run 1", "facts")) as txn:
            txn.write(rows)

    in_a_thread(call)
    expect_failed(query, 0, "was given identity= in foreachBatch")
    assert (query.ends_after_batch, FakeRun.made) == (True, [])


def test_an_identity_is_taken_beside_queries_that_run(sink: eos.Sink, query: FakeQuery) -> None:
    def call() -> None:
        with sink.batch(0, eos.Identity("job", "run 1", "facts")) as txn:
            txn.write(COLLECTED)

    in_a_thread(call)
    assert (query.failed, query.ends_with, FakeRun.made[0].taken) == (None, None, [(0, 1)])


def test_a_batch_with_an_identity_that_fails_ends_no_query_beside_it(sink: eos.Sink, query: FakeQuery) -> None:
    def call() -> None:
        with sink.batch(0, eos.Identity("job", "run 1", "facts")):
            raise LookupError

    in_a_thread(call)
    assert (query.failed, query.ends_with, query.ends_after_batch) == (None, None, False)
