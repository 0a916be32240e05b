"""Runs and queries that stand in for those of Spark and the brokers where a sink is called."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, ClassVar

import eos
from eos.commit.decision import Identity
from eos.commit.failure import FAILED, Failure, parse
from eos.errors import NotCommitted

ROWS: Any = SimpleNamespace(sparkSession=None)

OF_STREAM: Any = SimpleNamespace(_jsparkSession="of the query")
OF_PARENT: Any = SimpleNamespace(_jsparkSession="of the application")
STREAMED: Any = SimpleNamespace(sparkSession=OF_STREAM)
COLLECTED: Any = SimpleNamespace(sparkSession=OF_PARENT)


class FrameOf:
    """A DataFrame of these rows."""

    def __init__(self, rows: str) -> None:
        self.rows = rows

    def sameSemantics(self, other: FrameOf) -> bool:  # noqa: N802  Spark's name
        return self.rows == other.rows


class FakeRun:
    """Takes every batch but those in `fails`."""

    fails: frozenset[int] = frozenset()
    made: ClassVar[list[FakeRun]] = []

    writes = True
    jumped = newest = None

    def __init__(self, identity: Identity, query: Any) -> None:
        self.run_id, self.query = identity.run_id, query
        self.taken: list[tuple[int, int]] = []
        self.closed = threading.Event()
        self.made.append(self)

    def take(self, batch_id: int, writes: list[Any], identity: Identity) -> None:
        if batch_id in self.fails:
            raise NotCommitted("five tries failed")
        self.taken.append((batch_id, len(writes)))

    def tell(self, metrics: Any) -> None: ...

    def close(self) -> None:
        self.closed.set()


class FakeQuery:
    """A query that runs the batch `in_hand`; `files` is its checkpoint, and `ends_with` what it is to end with.

    It may wait for its next batch instead.
    """

    query_id = "query"

    def __init__(self, in_hand: int = 0, run_id: str = "run") -> None:
        self.in_hand, self.run_id = in_hand, run_id
        self.files: dict[str, str] = {}
        self.ends_with: str | None = None
        self.ends_after_batch = False
        self.waits = False
        self.ended = threading.Event()

    @property
    def failed(self) -> Failure | None:
        """What the checkpoint notes of a batch that failed."""
        return next(iter(parse(self.files.get(FAILED))), None)

    def is_in_batch(self) -> bool:
        return not self.waits

    def batch_in_hand(self) -> int:
        return self.in_hand

    def offsets(self, batch_id: int) -> str:
        return f"offsets {batch_id}"

    def is_active(self, failed: BaseException | None = None) -> bool:
        return not self.ended.is_set()

    def await_end(self) -> None:
        self.ended.wait()

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def register(self, name: str, text: str) -> None:
        self.files[name] = text

    def remove(self, name: str) -> None:
        self.files.pop(name, None)

    def end_with(self, why: str | None) -> None:
        self.ends_with = why

    def end_after_batch(self) -> None:
        self.ends_after_batch = True


def in_a_thread(call: Callable[[], None]) -> None:
    """Call it in a thread, and forget what it raises."""

    def swallow() -> None:
        with suppress(eos.EosError, LookupError):
            call()

    thread = threading.Thread(target=swallow)
    thread.start()
    thread.join()


def expect_failed(query: FakeQuery, batch_id: int, words: str) -> None:
    """Expect that the query ends with a failure of this batch, and that the next run finds it noted."""
    assert query.failed is not None
    assert (query.failed.batch_id, query.failed.run_id) == (batch_id, query.run_id)
    assert words in query.failed.error
    assert query.ends_with is not None
    assert f"Batch {batch_id} failed: " in query.ends_with
    assert words in query.ends_with
