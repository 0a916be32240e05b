"""What a run of a query refuses after a batch that failed, in that run and in the next one."""

from __future__ import annotations

import json
import logging
import threading
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos.commit.decision import Identity
from eos.commit.failure import FAILED
from eos.delivery.delivery import Write
from eos.errors import CommitUnknown, EosError, InvalidInput, NotCommitted, ReplayFailed
from eos.sinks import shared_run
from eos.sinks.metrics import Metrics
from eos.sinks.options import SinkOptions
from eos.sinks.run import RunContext
from eos.sinks.shared_run import SharedRun
from eos.sinks.write_request import WriteRequest
from tests.unit.sinks.fakes import FakeQuery, FrameOf
from tests.waiting import until


class World:
    """A checkpoint and a log that outlive runs, and one batch function that swallows every error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.query, self.log, self.fails = FakeQuery(), list[int](), dict[int, EosError]()
        self.out_of_reach = False
        monkeypatch.setattr(shared_run, "begin", self.begin)
        monkeypatch.setattr(shared_run, "_shared", weakref.WeakValueDictionary())

    def begin(self, start: RunContext) -> Any:
        if self.out_of_reach:
            raise CommitUnknown("no broker")
        logged = start.options.guarantee == "exactly-once"

        def take(batch_id: int, writes: object, identity: object) -> None:
            if start.taken.get(batch_id):
                raise InvalidInput("Put both writes into one block")
            if batch_id in self.fails:
                raise self.fails[batch_id]
            start.taken.clear()
            start.taken[batch_id] = "taken"
            if logged:
                self.log.append(batch_id)

        class Begun:
            newest = property(lambda _: SimpleNamespace(batch_id=max(self.log)) if logged and self.log else None)
            jumped, writes = None, True

            def __init__(self) -> None:
                self.take = take

            def tell(self, metrics: Metrics) -> None: ...

            def close(self) -> None: ...

        return Begun()

    def run(self, **options: Any) -> SharedRun:
        """Begin the query's next run."""
        self.query.ends_after_batch, self.query.ends_with = False, None
        self.query.run_id += "'"
        return self.beside(**options)

    def beside(self, **options: Any) -> SharedRun:
        """Begin it for another sink in the same run."""
        query: Any = self.query
        return SharedRun(SinkOptions(**{"name": "flights", **options}), self.query.run_id, query)

    def take(self, shared: SharedRun, batch_id: int, *frames: Any) -> str:
        """Call the sink for DataFrames of a batch, and return the error that the batch function swallows."""
        requests = [WriteRequest(frame, None, shared._options) for frame in frames]
        none: Any = None
        query: Any = self.query
        identity = Identity("query", "run", f"offsets {batch_id}")
        start = RunContext(shared._options, none, Metrics(), none, query, identity, batch_id)
        try:
            shared.take(start, [Write(none, None)], requests)
        except EosError as error:
            shared.failed(batch_id, error, requests)
            return str(error)
        return ""

    @property
    def noted(self) -> list[tuple[str, int, int]]:
        entries = json.loads(self.query.files.get(FAILED, "[]"))
        return [(entry["name"], entry["batch_id"], entry["last"]) for entry in entries]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(monkeypatch)
    yield world
    world.query.ended.set()


def passes_5_to_7(world: World) -> None:
    """Have batch 5 fail, and Spark pass it and the two that are refused after it."""
    run = world.run()
    world.fails = {5: NotCommitted("aborted")}
    assert [bool(world.take(run, batch)) for batch in (4, 5, 6, 7)] == [False, True, True, True]
    world.fails = {}
    assert world.noted == [("flights", 5, 7)]


def test_all_refused_batches_are_named_and_skipping_the_first_leaves_the_others_refused(world: World) -> None:
    passes_5_to_7(world)
    said = world.take(world.run(), 8)
    assert "so batches 5 to 7 would be missing from the output" in said
    assert "go on without them: `eos sink skip flights --batch 5` and then `eos sink skip flights --batch 7`" in said
    world.log.append(5)
    assert "batches 5 to 7 would be missing" in world.take(world.run(), 8)
    world.log.append(7)
    assert world.take(world.run(), 8) == ""
    assert FAILED not in world.query.files


def commits_but_is_not_told(world: World, batch_id: int) -> None:
    """Have the next call for a batch commit it, and not learn so."""
    world.fails = {batch_id: CommitUnknown("no answer")}
    world.log.append(batch_id)


@pytest.mark.parametrize("next_batch", [5, 6], ids=["handed over again", "passed"])
@pytest.mark.parametrize(
    ("second", "refused"), [(FrameOf("b"), True), (FrameOf("a"), False)], ids=["other rows", "the same rows"]
)
def test_a_batch_that_is_committed_with_the_rows_of_one_of_its_calls_is_not_taken_for_done(
    world: World, second: Any, refused: bool, next_batch: int
) -> None:
    """The log has the batch, and cannot tell that the rows of the call which was refused are missing."""
    run = world.run()
    commits_but_is_not_told(world, 5)
    assert [bool(world.take(run, 5, frame)) for frame in (FrameOf("a"), second)] == [True, True]
    world.fails = {}
    said = world.take(world.run(), next_batch, FrameOf("a"), FrameOf("b"))
    assert bool(said) is refused
    if not refused:
        return
    assert "calls with different rows for batch 5" in said
    assert "The rows of one call are committed. Those of others are not, and no replay writes them." in said
    assert f"delete {FAILED} from the checkpoint" in said


def test_a_batch_that_is_in_the_output_is_not_called_missing_once_the_log_was_read(world: World) -> None:
    """A later failure is a failure of its own, and its batch is the one that is missing."""
    run = world.run()
    commits_but_is_not_told(world, 5)
    world.take(run, 5)
    again = world.run()
    world.fails = {6: NotCommitted("aborted")}
    assert world.take(again, 6) == "aborted"
    assert world.noted == [("flights", 6, 6)]
    world.fails = {}
    assert world.take(again, 6) == ""
    assert world.noted == []


def test_the_batch_that_spark_hands_over_again_is_not_counted_as_missing(world: World) -> None:
    """It was refused, and its error has left the function: a command that gave it up would lose it."""
    passes_5_to_7(world)
    said = world.take(world.run(), 7)
    assert "so batches 5 to 6 would be missing" in said
    assert "--batch 7" not in said
    world.log.append(6)
    assert [world.take(world.run(), 7), world.noted] == ["", []]


def test_spark_runs_the_batches_again(world: World) -> None:
    passes_5_to_7(world)
    run = world.run()
    assert [world.take(run, batch) for batch in (5, 6, 7, 8)] == [""] * 4
    assert (world.log, world.noted) == ([4, 5, 6, 7, 8], [])


def test_a_run_that_fails_before_it_has_looked_back_keeps_the_note(world: World) -> None:
    """A broker out of reach would else erase what an earlier run has noted."""
    passes_5_to_7(world)
    world.out_of_reach = True
    assert world.take(world.run(), 8) == "no broker"
    world.out_of_reach = False
    assert "batches 5 to 7 would be missing" in world.take(world.run(), 8)


def test_the_query_ends_where_a_later_batch_is_refused_and_not_before(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch that failed may be written again; a later one is not, as long as the query runs."""
    run = world.run()
    world.fails = {5: NotCommitted("aborted")}
    world.take(run, 5)
    assert (world.query.ends_with, world.query.ends_after_batch) == ("Batch 5 failed: aborted", False)
    world.fails = {}
    world.take(run, 5)
    assert (world.query.ends_with, world.query.ends_after_batch) == (None, False)
    world.fails = {6: NotCommitted("aborted")}
    world.take(run, 6)
    caplog.set_level(logging.ERROR, "eos.sink")
    world.take(run, 7)
    assert world.query.ends_after_batch
    assert "Batch 7 is not written: batch 6 failed" in caplog.text
    world.fails = {}
    again = world.run()
    world.take(again, 8)
    assert world.query.ends_after_batch, "also where an earlier run has noted it"


class Rows:
    """A DataFrame whose plan is told by a word."""

    def __init__(self, plan: str) -> None:
        self.plan = plan

    def sameSemantics(self, other: object) -> bool:  # noqa: N802
        return isinstance(other, Rows) and self.plan == other.plan


def test_after_a_call_that_failed_the_same_rows_are_written_and_no_others(world: World) -> None:
    """The log would have the batch, without the rows of the call that failed."""
    run = world.run()
    world.fails = {5: NotCommitted("aborted")}
    assert [world.take(run, 5, Rows("even")) for _ in range(3)] == ["aborted"] * 3
    world.fails = {}
    for others in (["odd"], ["even "], []):
        said = world.take(run, 5, *map(Rows, others))
        assert "Nothing of batch 5 is written. An earlier call of the sink for the batch failed" in said
        assert "Put both writes into one `with sink.batch(batch_id) as txn:`" in said
    assert world.log == []
    assert "batch 5 would be missing" in world.take(run, 6, Rows("all"))
    run = world.run()
    world.fails = {5: NotCommitted("aborted")}
    assert [world.take(run, 5, Rows("even")) for _ in range(3)] == ["aborted"] * 3
    world.fails = {}
    assert world.take(run, 5, Rows("odd"), Rows("even")) == ""
    assert world.take(run, 6, Rows("odd")) == ""


@pytest.mark.parametrize("given", [None, 3, "rows"])
def test_what_is_no_dataframe_is_the_same_as_itself_alone(world: World, given: object) -> None:
    options = SinkOptions(name="flights")
    one = WriteRequest(cast(Any, given), None, options)
    assert one.writes_the_same_as(one)
    assert not one.writes_the_same_as(WriteRequest(cast(Any, object()), None, options))
    assert not one.writes_the_same_as(one._replace(topic="t"))
    assert not one.writes_the_same_as(one._replace(options=SinkOptions(name="flights", value_format="json")))
    assert one.writes_the_same_as(one._replace(options=SinkOptions(name="flights", metrics=lambda batch: None)))


def test_a_second_call_that_was_refused_is_not_taken_for_done_by_the_next_run(world: World) -> None:
    """The function was corrected meanwhile: the log has the batch, with the rows of the first call alone."""
    run = world.run()
    assert [bool(world.take(run, 5)), bool(world.take(run, 5))] == [False, True]
    for _ in range(2):
        said = world.take(world.run(), 5)
        assert 'Batch 5 is not taken for done: a second call for batch 5, of the sink "flights", failed' in said
        assert "The error was: Put both writes into one block The rows of the first call are committed." in said
        assert "Write the missing rows by hand if they are needed, delete eos-failed.json from the checkpoint" in said
    said = world.take(world.run(), 6)
    assert "Batch 6 is not written: a second call" in said
    del world.query.files[FAILED]
    assert world.take(world.run(), 6) == ""


def test_without_a_log_the_whole_batch_is_written_again_after_a_second_call(world: World) -> None:
    run = world.run(guarantee="at-least-once")
    assert [bool(world.take(run, 5)), bool(world.take(run, 5))] == [False, True]
    assert world.take(world.run(guarantee="at-least-once"), 5) == ""
    assert world.noted == []


def test_two_sinks_of_one_query_have_an_entry_each(world: World) -> None:
    one, two = (world.run(guarantee="at-least-once", topic=f"persistent://a/b/{topic}") for topic in "cd")
    world.fails = {3: NotCommitted("aborted")}
    world.take(one, 3)
    world.fails = {5: NotCommitted("aborted")}
    assert [bool(world.take(two, batch)) for batch in (3, 4, 5)] == [False, False, True]
    assert world.noted == [("flights", 3, 3), ("flights", 5, 5)]
    world.fails = {}
    assert world.take(two, 5) == ""
    assert world.noted == [("flights", 3, 3)]
    world.query.files[FAILED] = world.query.files[FAILED].replace("flights", "others")
    assert world.take(world.run(guarantee="at-least-once"), 9) == ""
    assert world.noted == [("others", 3, 3)]


@pytest.mark.parametrize(
    ("now", "told"),
    [({"name": "renamed"}, True), ({"topic": "persistent://a/b/d"}, True), ({}, False)],
    ids=["renamed", "to another topic", "as it was"],
)
def test_a_sink_without_a_log_that_has_changed_since_it_failed_is_warned_of(
    world: World, caplog: pytest.LogCaptureFixture, now: dict[str, str], told: bool
) -> None:
    """Several of them may write side by side, so the next run cannot know whether this one is still called."""
    before = {"guarantee": "at-least-once", "topic": "persistent://a/b/c"}
    world.fails = {5: NotCommitted("aborted")}
    world.take(world.run(**before), 5)
    world.fails = {}
    said = world.take(world.run(**{**before, **now}), 6)
    assert ('Batch 5 of the sink "flights" failed' in caplog.text, "Batch 6 is not written" in said) == (told, not told)


def test_a_query_without_a_next_batch_ends_once_spark_has_passed_the_one_that_failed(world: World) -> None:
    """A stream without new input, or with a trigger of an hour."""
    run = world.run()
    world.fails = {5: NotCommitted("aborted")}
    world.take(run, 5)
    world.query.files["commits/4"] = world.query.files["commits/5"] = "v1"
    until(lambda: world.query.ends_after_batch, "the query goes on")
    assert world.query.ends_with == "Batch 5 failed: aborted"


def test_a_query_without_a_next_batch_ends_where_no_sink_could_be_made_for_its_last_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has noticed the failure but the call that makes a sink, and user code swallowed its error."""
    monkeypatch.setattr(shared_run, "_LOOK_S", 0.01)
    query: Any = world.query
    query.in_hand = 5
    for _ in range(3):
        shared_run.failed_without_a_sink(query, "flights", InvalidInput("no such option"))
    watches = [thread for thread in threading.enumerate() if thread.name == "eos-passed run flights"]
    assert len(watches) == 1
    time.sleep(0.1)
    assert not query.ends_after_batch, "the batch may still be written"
    query.files["commits/5"] = "v1"
    until(lambda: query.ends_after_batch, "the query goes on")
    assert query.ends_with == "Batch 5 failed: no such option"


def test_a_sink_that_is_made_after_all_keeps_its_query_running(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_run, "_LOOK_S", 0.01)
    query: Any = world.query
    query.in_hand = 5
    shared_run.failed_without_a_sink(query, "flights", InvalidInput("no such option"))
    (watch,) = (thread for thread in threading.enumerate() if thread.name == "eos-passed run flights")
    assert world.take(world.beside(), 5) == ""
    query.files["commits/5"] = "v1"
    watch.join(60)
    assert not watch.is_alive()
    assert (query.ends_after_batch, query.ends_with) == (False, None)


def test_rows_that_a_sink_of_another_name_was_refused_are_missed_where_the_log_has_their_batch(world: World) -> None:
    world.take(world.run(), 5)
    other = world.run(name="others")
    world.fails = {5: InvalidInput("one query has one sink")}
    world.take(other, 5)
    world.fails = {}
    for _ in range(2):
        assert '5, of the sink "others", failed in run' in world.take(world.run(), 5)
    world.log.remove(5)
    assert [world.take(world.run(), 5), world.noted] == ["", []], "the whole batch is written"


def test_a_failure_that_cannot_be_noted_is_noted_at_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a query is stopped its thread is interrupted, and cannot write a file."""

    def interrupted(name: str, text: str) -> None:
        raise InterruptedError

    run = world.run()
    world.fails = {5: NotCommitted("aborted")}
    with monkeypatch.context() as patch:
        patch.setattr(world.query, "register", interrupted)
        assert [bool(world.take(run, batch)) for batch in (5, 6)] == [True, True]
    assert world.noted == []
    world.query.ended.set()
    run.end_with_query()
    assert world.noted == [("flights", 5, 6)]


def test_the_advice_spares_the_entries_of_other_sinks(world: World) -> None:
    entry = {"name": "others", "batch_id": 2, "run_id": "run", "error": "no", "last": 2}
    world.query.files[FAILED] = json.dumps([entry])
    run = world.run(guarantee="at-least-once")
    world.fails = {3: NotCommitted("aborted")}
    world.take(run, 3)
    assert 'without it: take the entry of the sink "flights" out of eos-failed.json' in world.take(run, 4)


def test_a_replay_that_failed_is_missing_from_the_querys_state(world: World) -> None:
    run = world.run()
    world.fails = {5: ReplayFailed("no memory")}
    world.take(run, 5)
    told = world.take(run, 6)
    assert f"batch 5 failed in run {world.query.run_id} of the query" in told
    assert "batch 5 would be missing from the query's state" in told
