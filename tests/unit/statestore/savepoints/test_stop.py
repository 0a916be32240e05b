"""What is told when a query can't end with a savepoint; the query and the tree are played."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from eos.spark import query_stop
from statestore.errors import CutFailed, InvalidInput, StateStoreError, Unavailable
from statestore.savepoints import bookkeeper
from statestore.savepoints.periodic import periodic_savepoints
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.stop import stop_with_savepoint
from statestore.savepoints.store import SavepointStore

MADE = Savepoint("end", "ready", "bk://zk:2181/q", 0, 7, "query")


class World:
    """A query. Attributes: ended: whether it was asked to end; in_time: and did; runs; failed: with what error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *savepoints: Savepoint) -> None:
        self.ended, self.in_time, self.runs = False, True, True
        self.failed: Exception | None = None
        self.raises: StateStoreError | None = None
        monkeypatch.setattr(query_stop, "end_after_batch", self._end)
        monkeypatch.setattr(bookkeeper, "create", self._create)
        monkeypatch.setattr(SavepointStore, "of", lambda *_, **__: SimpleNamespace(all=lambda: list(savepoints)))

    def stop(self, checkpoint: str = "bk://zk:2181/q", timeout_s: Any = 600) -> Savepoint:
        execution = SimpleNamespace(resolvedCheckpointRoot=lambda: checkpoint)
        wrapper = SimpleNamespace(streamingQuery=lambda: execution)
        query: Any = SimpleNamespace(_jsq=wrapper, exception=lambda: self.failed, isActive=self.runs)
        return stop_with_savepoint(cast(StreamingQuery, query), "end", timeout_s=timeout_s)

    def _end(self, query: object, timeout_s: float) -> bool:
        self.ended = True
        return self.in_time

    def _create(self, *_: object, **__: object) -> Savepoint:
        assert self.ended
        if self.raises is not None:
            raise self.raises
        return MADE


Make = Callable[..., World]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Make:
    return lambda *savepoints: World(monkeypatch, *savepoints)


def test_it_ends_and_then_the_savepoint_is_made(world: Make) -> None:
    assert world().stop() is MADE


def test_what_could_not_be_done_is_found_before_the_query_ends(world: Make) -> None:
    taken = world(MADE)
    with pytest.raises(InvalidInput, match=r"There is a savepoint end already. The query runs on"):
        taken.stop()
    taken.runs = False
    with pytest.raises(InvalidInput, match=r"There is a savepoint end already. The query has ended before"):
        taken.stop()
    elsewhere = world()
    with pytest.raises(InvalidInput, match=r"file:///c, and savepoints are of checkpoints on bk://"):
        elsewhere.stop("file:///c")
    assert not taken.ended
    assert not elsewhere.ended


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), "5", None])
def test_a_time_that_is_none_is_refused_before_the_query_ends(world: Make, timeout_s: object) -> None:
    one = world()
    with pytest.raises(InvalidInput, match=r"timeout_s is .*. Give seconds, a number above 0. The query runs on"):
        one.stop(timeout_s=timeout_s)
    assert not one.ended


@pytest.mark.parametrize(
    "error",
    [
        CutFailed("files are missing"),
        InvalidInput("bk://zk:2181/q has no committed batch yet"),
        InvalidInput("There is a savepoint end in this tree already"),
    ],
)
def test_a_savepoint_that_cannot_be_made_of_an_ended_query_is_told_as_such(world: Make, error: StateStoreError) -> None:
    """InvalidInput would say that the query runs on."""
    one = world()
    one.raises = error
    with pytest.raises(Unavailable, match=rf"has ended in good order, .*{error}.*savepoint create end bk://"):
        one.stop()


def test_what_fails_after_the_query_has_ended_is_told_with_what_to_do(world: Make) -> None:
    one = world()
    one.failed = RuntimeError("the sink failed")
    with pytest.raises(Unavailable, match=r"has ended with an error, and no savepoint was made: the sink failed"):
        one.stop()
    one.in_time = False
    with pytest.raises(Unavailable, match=r"has not ended in 600 s.* Call again to wait"):
        one.stop()


class OfConnect:
    """A query of Spark Connect, whose JVM is elsewhere."""

    id = "7f0c"


@pytest.mark.parametrize("query", [OfConnect(), None])
@pytest.mark.parametrize(
    "call", [lambda query: stop_with_savepoint(query, "end"), lambda query: periodic_savepoints(query, minutes=5)]
)
def test_what_is_not_a_query_of_this_process_is_refused(call: Callable[[Any], object], query: Any) -> None:
    with pytest.raises(InvalidInput, match=r"is not a query of Spark in classic mode \(not Spark Connect\)"):
        call(query)
