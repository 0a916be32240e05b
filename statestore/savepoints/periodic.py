"""Savepoints made again and again, of which the newest few are kept.

A savepoint is made first, and older ones are deleted only when it is ready: there is always one, once there was one. A
failure is told, and the next round tries again; the query notices nothing, since a savepoint only reads its checkpoint.
A process that dies leaves one that shows as abandoned, which the next round deletes.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from statestore.errors import InvalidInput, StateStoreError
from statestore.savepoints import bookkeeper, keeping
from statestore.savepoints.savepoint import Savepoint, check_name
from statestore.savepoints.store import Store

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("statestore.savepoints")

_STAMP = "%Y%m%dT%H%M%SZ"
_STAMPED = re.compile(r"(?P<prefix>.+)-\d{8}T\d{6}Z")
_LOOK_S = 0.5
_LONGEST_MINUTES = 365 * 24 * 60


@dataclass(frozen=True, slots=True)
class Round:
    """What was done in one round.

    Attributes:
        made: the new savepoint; None if the newest one already holds the newest committed batch.
        deleted: names of those that were deleted.
        failures: what could not be done, in words; the rest was.
    """

    made: Savepoint | None
    deleted: tuple[str, ...]
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """Savepoints of one checkpoint, named PREFIX-<moment, UTC>.

    Attributes:
        checkpoint: its address, bk://…; the query may run, here or elsewhere.
        keep: how many are kept, 1 or more.
        prefix: of their names. Others than those named so are never deleted.
        options: Hadoop options `fs.bk.…`.
        now: seconds since the epoch; replaced by tests.
    """

    checkpoint: str
    keep: int = 5
    prefix: str = "every"
    options: Mapping[str, object] | None = None
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise InvalidInput(f"keep is {self.keep}: at least 1 savepoint must be kept, or there would be none")
        check_name(self._name())

    def run_once(self) -> Round:
        """Make a savepoint, and delete what is too many.

        Raises:
            StateStoreError: what `create` raises; then nothing was deleted. That an old one could not be deleted is
                told in `Round.failures`.
        """
        store = Store.of(self.checkpoint, self.options)
        before = self._ours(store)
        newest = max((one.batch for one in before if one.state == "ready"), default=-1)
        name = self._name()
        made = bookkeeper.create(name, self.checkpoint, options=self.options)
        if made.batch == newest:
            # Nothing was committed since: another of the same batch would push out one that is of use.
            bookkeeper.delete(name, self.checkpoint, self.options)
            return Round(None, *self._prune(store))
        return Round(made, *self._prune(store))

    def _name(self) -> str:
        return f"{self.prefix}-{datetime.fromtimestamp(self.now(), UTC).strftime(_STAMP)}"

    def _ours(self, store: Store) -> list[Savepoint]:
        """Those of this schedule, oldest first."""
        mine = []
        for one in store.all():
            stamped = _STAMPED.fullmatch(one.name)
            if stamped and stamped["prefix"] == self.prefix and one.source == store.address.uri:
                mine.append(one)
        return mine

    def _prune(self, store: Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
        ours = self._ours(store)
        ready = [one for one in ours if one.state == "ready"]
        useless = [one for one in ours if one.state in ("abandoned", "deleting")]
        deleted, failures = [], []
        for one in (*useless, *ready[: -self.keep]):
            try:
                store.delete(one.name)
                deleted.append(one.name)
            except StateStoreError as error:
                failures.append(f"savepoint {one.name} could not be deleted: {error}")
        if ready:
            keeping.tell_sink(store, store.address, ready[-1].query)
        return tuple(deleted), tuple(failures)


class Periodic:
    """A thread in the driver that makes savepoints of a query until it ends, or until `stop`.

    It fails no batch and holds none up: what goes wrong is a warning of the logger `statestore.savepoints`.
    """

    def __init__(self, schedule: Schedule, every_s: float, ended: Callable[[], bool]) -> None:
        self._schedule, self._every_s, self._ended = schedule, every_s, ended
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statestore-savepoints", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 60.0) -> None:
        """End, after the savepoint in hand."""
        self._stopped.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        due = time.monotonic() + self._every_s
        while not self._stopped.wait(min(_LOOK_S, self._every_s)):
            if self._ended():
                return
            if time.monotonic() >= due:
                self._round()
                due = time.monotonic() + self._every_s

    def _round(self) -> None:
        try:
            done = self._schedule.run_once()
        except Exception as error:  # of whatever kind: the query must not notice
            log.warning("no savepoint was made of %s: %s", self._schedule.checkpoint, error)
            return
        for failure in done.failures:
            log.warning("%s", failure)
        if done.made is not None:
            log.info("savepoint %s holds batch %d", done.made.name, done.made.batch)


def check_minutes(what: str, minutes: object) -> None:
    """Refuse a time between two savepoints that is none. Args: what it is called; the time. Raises InvalidInput."""
    if not isinstance(minutes, int | float) or not 0 < minutes <= _LONGEST_MINUTES:
        raise InvalidInput(f"{what} is {minutes!r}: give a number above 0 and up to {_LONGEST_MINUTES:,}, a year")


def periodic_savepoints(
    query: StreamingQuery,
    *,
    minutes: float,
    keep: int = 5,
    prefix: str = "every",
    options: Mapping[str, object] | None = None,
) -> Periodic:
    """Make a savepoint of a query's checkpoint every so many minutes while it runs, and keep the newest few.

    Args:
        query: runs in this process, with its checkpoint on bk://.
        minutes: between two of them; the first comes after the first interval. More than 0, at most a year.
        keep: how many are kept. Default 5.
        prefix: of their names, PREFIX-<moment, UTC>.
        options: Hadoop options `fs.bk.…`.

    Raises:
        InvalidInput: an argument is wrong.
    """
    check_minutes("minutes", minutes)
    from eos.spark.query import JVM_GONE, checkpoint_of

    source = checkpoint_of(query)
    Store.of(source, options)

    def ended() -> bool:
        try:
            return not query.isActive
        except JVM_GONE:
            return True  # with Spark's JVM the query has ended, too

    return Periodic(Schedule(source, keep, prefix, options), minutes * 60, ended)
