"""Savepoints made again and again. The newest few are kept.

A savepoint is made first, and older ones are deleted only when it is ready: there is always one, once there was one. Of
each query that ran at the same address before, the newest one is kept. A failure is reported, and the next round tries
again. The query notices nothing, since a savepoint only reads its checkpoint. A process that dies leaves one that shows
as abandoned, which the next round deletes.

Names are unique in a tree, which holds many checkpoints: a name has the query's id in it and the second in which it was
made. Two processes that make one of the same query in the same second are left: the later takes the next free second.
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

from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.logs import read_query_id
from statestore.errors import InvalidInput, StateStoreError
from statestore.savepoints import bookkeeper
from statestore.savepoints.savepoint import Savepoint, check_name
from statestore.savepoints.store import SavepointStore
from statestore.whole_numbers import check_count

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("statestore.savepoints")

_STAMP = "%Y%m%dT%H%M%SZ"
_STAMPED = r"-(?P<query>[^-]{1,8})-\d{8}T\d{6}Z"
_ID = 8  # characters of a query's id that tell queries of a tree apart
_LATEST = 5  # seconds after the true one, where others have taken those before
_LOOK_S = 0.5
_LONGEST_MINUTES = 365 * 24 * 60


@dataclass(frozen=True, slots=True)
class Round:
    """The work of one round.

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
    """Savepoints of one checkpoint, named PREFIX-<query>-<moment, UTC>: 8 characters of the query's id.

    Attributes:
        checkpoint: its address, bk://…; the query may run, here or elsewhere.
        keep: how many are kept, 1 or more.
        prefix: of their names. Others than those named so are never deleted.
        options: Hadoop options `fs.bk.…`.
        now: seconds since the epoch; replaced by tests.
        operators: how many stateful operators the query has; None: as many as our sink has noted, else not known.
    """

    checkpoint: str
    keep: int = 5
    prefix: str = "every"
    options: Mapping[str, object] | None = None
    now: Callable[[], float] = time.time
    operators: int | None = None

    def __post_init__(self) -> None:
        check_count("keep", self.keep, 1)
        if self.operators is not None:
            check_count("operators", self.operators)
        if not isinstance(self.prefix, str):
            raise InvalidInput(f"prefix is {self.prefix!r}. Give a text, with which the savepoints' names begin")
        check_name(self._name("0" * _ID))

    def check(self) -> None:
        """Find out, before the first round, what is wrong with the address or the options. Nobody is asked.

        Raises:
            InvalidInput: one of them is wrong.
            Unavailable: no JVM could be started.
        """
        SavepointStore.of(self.checkpoint, self.options)

    def run_once(self) -> Round:
        """Make a savepoint, and delete what is too many.

        Raises:
            StateStoreError: what `create` raises; then nothing was deleted. `Round.failures` says if an old one could
                not be deleted.
        """
        store = SavepointStore.of(self.checkpoint, self.options)
        before = self._ours(store)
        made = self._make(store)
        # Batch 7 of a query that ran at this address before is another batch than this one's. The last savepoint may
        # hold a lower batch than those before it: a savepoint was restored to this address.
        same = [one.batch_id for one in before if one.state == "ready" and one.query == made.query]
        if same[-1:] == [made.batch_id]:
            # Nothing was committed since: another of the same batch would push out one that is of use.
            bookkeeper.delete(made.name, self.checkpoint, options=self.options)
            return Round(None, *self._prune(store, made.query))
        return Round(made, *self._prune(store, made.query))

    def _make(self, store: SavepointStore) -> Savepoint:
        query = read_query_id(HadoopFiles(store.hadoop, store.address.uri))
        later = 0
        while True:
            name = self._name(query, later)
            try:
                return bookkeeper.create(name, self.checkpoint, operators=self.operators, options=self.options)
            except InvalidInput:
                if later == _LATEST or name not in (one.name for one in store.all()):
                    raise
                later += 1

    def _name(self, query: str, later: int = 0) -> str:
        """The name of one that is made now, or seconds later."""
        moment = datetime.fromtimestamp(self.now() + later, UTC).strftime(_STAMP)
        return f"{self.prefix}-{query.partition('-')[0][:_ID]}-{moment}"

    def _ours(self, store: SavepointStore) -> list[Savepoint]:
        """Those of this schedule, oldest first; also those of a query that ran at the same address before."""
        stamped = re.compile(re.escape(self.prefix) + _STAMPED)
        return [one for one in store.all() if one.source_path == store.address.path and _is_of(one, stamped)]

    def _prune(self, store: SavepointStore, query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        ours = self._ours(store)
        ready = [one for one in ours if one.state == "ready"]
        useless = [one for one in ours if one.state in ("abandoned", "deleting")]
        too_many = [one for one in ready if one.query == query][: -self.keep]
        # A query has another id where its checkpoint was lost: the newest savepoint of the one before brings it back.
        last = {one.query: one.name for one in ready}
        too_many += [one for one in ready if one.query != query and one.name != last[one.query]]
        deleted, failures = [], []
        for one in (*useless, *too_many):
            try:
                store.delete(one.name)
                deleted.append(one.name)
            except StateStoreError as error:
                failures.append(f"savepoint {one.name} could not be deleted: {error}")
        if ready:
            store.tell_sink(store.address, query)
        return tuple(deleted), tuple(failures)


def _is_of(one: Savepoint, stamped: re.Pattern[str]) -> bool:
    """Whether a schedule's pattern made the name, and not that of another prefix which ends like an id."""
    named = stamped.fullmatch(one.name)
    return named is not None and (not one.query or one.query.startswith(named["query"]))


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
            log.info("savepoint %s holds batch %d", done.made.name, done.made.batch_id)


def check_minutes(what: str, minutes: object) -> None:
    """Refuse a time between two savepoints that is none. Args: what it is called; the time. Raises InvalidInput."""
    if not isinstance(minutes, int | float) or not 0 < minutes <= _LONGEST_MINUTES:
        raise InvalidInput(f"{what} is {minutes!r}. Give a number above 0 and up to {_LONGEST_MINUTES:,}, a year")


def periodic_savepoints(
    query: StreamingQuery,
    *,
    minutes: float,
    keep: int = 5,
    prefix: str = "every",
    operators: int | None = None,
    options: Mapping[str, object] | None = None,
) -> Periodic:
    """Make a savepoint of a query's checkpoint every few minutes while it runs, and keep the newest ones.

    Args:
        query: runs in this process, with its checkpoint on bk://.
        minutes: between two savepoints. The first one comes after this time. More than 0, at most a year.
        keep: how many savepoints stay. Default 5.
        prefix: of their names PREFIX-<query>-<moment, UTC>, with 8 characters of the query's id.
        operators: how many stateful operators the query has. None: as many as `eos.sink` has noted. Without such a note
            each savepoint comes with a warning that state may be lost unseen.
        options: Hadoop options `fs.bk.…`.

    Raises:
        InvalidInput: an argument is wrong, or the query is of Spark Connect.
    """
    check_minutes("minutes", minutes)
    from eos.spark.query import JVM_GONE
    from statestore.savepoints.stop import checkpoint_of

    schedule = Schedule(checkpoint_of(query), keep, prefix, options, operators=operators)
    schedule.check()

    def ended() -> bool:
        try:
            return not query.isActive
        except JVM_GONE:
            return True  # with Spark's JVM the query has ended, too

    return Periodic(schedule, minutes * 60, ended)
