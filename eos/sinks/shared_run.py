"""The state that all sinks of one name share in one run of a query: one owner in a process, for all of them.

People make a sink inside the function of `foreachBatch`, make two of one name, close one in the middle of a batch, and
swallow its errors. So whether a batch was taken, and which one failed, is known here and not by a sink; the producers
are here too, so that a sink for each batch costs no more than one for all. A failure is also noted in the query's
checkpoint, where the next run finds it. The query ends with that error even where user code has swallowed it in the
last batch: Spark would note the batch as done, and its rows would be lost without a word.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from eos.commit.failure import Failure
from eos.commit.registration import REGISTRATION, UNLOGGED, Registration, Unlogged, fits
from eos.delivery.delivery import Write
from eos.errors import Fenced, InvalidInput, ReplayFailed
from eos.sinks.at_least_once import RepeatingRun
from eos.sinks.error_translation import before_the_log, words_of
from eos.sinks.failed_batches import FailedBatches, is_committed, logged, note_without_a_sink, noted_in_run
from eos.sinks.metrics import Metrics
from eos.sinks.options import SinkOptions
from eos.sinks.run import OwningRun, Run, RunContext
from eos.sinks.write_request import WriteRequest, differ, lacks_rows, refuse_other_rows
from eos.spark import query as spark

log = logging.getLogger("eos.sink")

Key = tuple[str, str, str, str]

_shared: Final[weakref.WeakValueDictionary[Key, SharedRun]] = weakref.WeakValueDictionary()
_sharing = threading.Lock()

_LOOK_S = 0.5


def shared_run(service_url: str, options: SinkOptions, run_id: str, query: spark.Query | None) -> SharedRun:
    """Return what this process's sinks of one control topic share in a run, which begins with the first call.

    It lasts until the query has ended; outside of a query for as long as a sink has it.

    Args: where the cluster is; the sink's options; the run; its query, None outside one.
    """
    logged = options.guarantee == "exactly-once"  # a sink without a log loses nothing beside another one
    key = (service_url, options.control_topic, "" if logged else str(options.topic), run_id)
    with _sharing:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = SharedRun(options, run_id, query)
            if query is not None:
                threading.Thread(target=found.end_with_query, name="eos-end", daemon=True).start()
        return found


def failed_without_a_sink(query: spark.Query, name: str, error: BaseException) -> None:
    """Note the batch in hand as failed where no sink could take it. Raises what py4j does.

    The query is to end with the error. A sink of this name that takes the batch after all, made with other options,
    clears that. A sink of another name does not, since other rows may be missing.

    Args: the query; of the sink that could not be made, "" if that is not known; what the call raises.
    """
    batch_id, stopped = query.batch_in_hand(), not query.is_active(error)
    begun = sinks_of(query, name)
    for one in begun:
        one.failed(batch_id, error, stopped=stopped)
    if begun or stopped:
        return
    words = words_of(error)
    passed = note_without_a_sink(query, name, batch_id, words)
    query.end_with(f"Batch {batch_id} failed: {words}")
    if passed or not name:  # a sink that has begun does not read the note of another
        query.end_after_batch()
        return
    watch = f"eos-passed {query.run_id} {name}"
    if all(thread.name != watch for thread in threading.enumerate()):  # one is enough for each try to make a sink
        watched = (query, lambda: noted_in_run(query, name))
        threading.Thread(target=end_once_passed, args=watched, name=watch, daemon=True).start()


def end_once_passed(query: spark.Query, failed: Callable[[], Failure | None]) -> None:
    """End the query as soon as Spark counts a batch as done that failed: a next one may be hours away.

    Returns when the query has ended, or the batch was written after all.

    Args: the query; asks for the batch that failed, None once it was written after all.
    """
    while query.is_active():
        with suppress(*spark.JVM_GONE):  # or the checkpoint's file system fails for now, and is asked again
            found = failed()
            if found is None:
                return
            if is_committed(query, found.batch_id):
                _end_query(query, found.error)
                return
        time.sleep(_LOOK_S)


def _end_query(query: spark.Query, words: str) -> None:
    """End a query whose function swallows errors. Otherwise it would read on, and never write a batch again."""
    log.error("The query ends, since an error did not leave foreachBatch. %s", words)
    query.end_after_batch()


def sinks_of(query: spark.Query, name: str) -> list[SharedRun]:
    """Return what the sinks of a name share that were called in this run of the query."""
    with _sharing:
        return [one for one in _shared.values() if one.run_id == query.run_id and one.name == name]


class SharedRun:
    """One run of a query on one control topic.

    Attributes:
        run_id: Spark's.
        query: the streaming query; None outside one.
        name: the sinks'.
    """

    def __init__(self, options: SinkOptions, run_id: str, query: spark.Query | None) -> None:
        self.run_id, self.query, self.name = run_id, query, options.name
        self._run: Run | None = None
        self._when_dropped: weakref.finalize[[], SharedRun] | None = None
        self._options = options
        self._taken: dict[int, str] = {}
        self._failed = FailedBatches(options, query)
        self._given_up: dict[int, list[Sequence[WriteRequest]]] = {}  # by calls that failed for the newest batch
        self._written: int | None = None  # the newest batch, by this run
        self._told = False  # the query is to end with the failure
        self._watch: threading.Thread | None = None  # while the batch that failed may be written again
        self._turn = threading.RLock()
        self._noting = threading.Lock()  # a call of another thread may fail while a batch is written

    @property
    def has_no_log(self) -> bool:
        """Whether it writes at least once."""
        return self._options.guarantee == "at-least-once"

    def take(self, start: RunContext, writes: Sequence[Write], requests: Sequence[WriteRequest] = ()) -> None:
        """Give a batch to the run that is open, or to a new one. Raises what `Sink.__call__` does.

        Args: what a run would begin with; what is to be written; the same as the caller gave it.
        """
        with self._turn:
            self._failed.refuse_a_hole(start.batch_id)
            for call in self._given_up.get(start.batch_id, []):
                refuse_other_rows(start.batch_id, call, requests)
            run = self._open(start.metrics, start.options) or self._begin(start)
            run.take(start.batch_id, writes, start.identity)
            with self._noting:
                self._written = start.batch_id
                self._succeeded(start.batch_id, requests)

    def failed(
        self, batch_id: int, error: BaseException, requests: Sequence[WriteRequest] = (), *, stopped: bool = False
    ) -> None:
        """Note a batch that failed: no later one is taken, and the query is to end with the error. Raises nothing.

        Args: the batch, the error of its call, its write requests, and whether the query was stopped, which must not
            end it with an error.
        """
        with self._noting:
            self._note(batch_id, error, requests, stopped=stopped)

    def _note(self, batch_id: int, error: BaseException, requests: Sequence[WriteRequest], *, stopped: bool) -> None:
        if self.query is not None:  # outside a query nobody but the caller counts a batch as done
            self._given_up = {batch_id: [*self._given_up.get(batch_id, []), tuple(requests)]}
        words = words_of(error)
        passed = self._failed.add(
            *(batch_id, self.run_id, words),
            replayed=isinstance(error, ReplayFailed),
            partly=self._written is not None and batch_id <= self._written,  # a thread may be late
            several=differ(self._given_up.get(batch_id, [])),
        )
        if isinstance(error, Fenced):  # for good: the run itself refuses all later calls
            self._failed.first = None
        if self.query is not None and not stopped:
            with logged(f"batch {batch_id} failed, and the query could not be told"):
                self.query.end_with(f"Batch {batch_id} failed: {words}")
                self._told = True
                if passed:
                    _end_query(self.query, words)
                elif self._watch is None or not self._watch.is_alive():
                    watched = (self.query, lambda: self._failed.first)
                    self._watch = threading.Thread(target=end_once_passed, args=watched, name="eos-passed", daemon=True)
                    self._watch.start()

    def close(self) -> None:
        """Close what is open. The taken batches stay known."""
        with self._turn:
            if self._run is not None:
                self._run.close()
                self._run = None
            if self._when_dropped is not None:
                self._when_dropped.detach()  # it would keep the run for as long as a sink has this one

    def end_with_query(self) -> None:
        """Wait for the end of the query, and close. Logs a failure that it has passed."""
        assert self.query is not None, "there is no query to wait for"
        self.query.await_end()
        with self._turn:
            self.close()
            with suppress(*spark.JVM_GONE):
                self._failed.end()

    def _open(self, metrics: Metrics, options: SinkOptions) -> Run | None:
        """Return the run that is open, if it writes as these options say."""
        run = self._run
        if run is None or replace(options, metrics=None) != replace(self._options, metrics=None):
            return None
        run.tell(metrics)
        return run

    def _begin(self, start: RunContext) -> Run:
        self.close()
        with before_the_log(start.batch_id):
            run = begin(replace(start, taken=self._taken))
        if not self._taken and self.query is not None:
            try:
                self._failed.look_back(run, start.batch_id)
                self._told = self._failed.noted_in(self.run_id)
            except BaseException:
                run.close()
                raise
        self._run, self._options = run, start.options
        if self.query is None:  # in a thread of its own, since closing waits for the broker
            self._when_dropped = weakref.finalize(self, threading.Thread(target=run.close, daemon=True).start)
            self._when_dropped.atexit = False
        return run

    def _succeeded(self, batch_id: int, requests: Sequence[WriteRequest]) -> None:
        """Forget what failed before: the batch was written after all, or the log has it.

        Not a call of another thread that has failed since the batch was begun, and whose rows nobody has written.
        """
        if self._failed.has_passed(batch_id):
            return
        if any(lacks_rows(requests, call) for call in self._given_up.get(batch_id, [])):
            self._failed.keep_as_part()
            return
        self._failed.forget(batch_id)
        self._given_up = {}
        if self._told and self.query is not None:
            self._told = False
            with logged("the query could not be told that its batch was written after all"):
                other = self._failed.of_another_sink()
                self.query.end_with(None if other is None else f"Batch {other.batch_id} failed: {other.error}")


def _refuse_a_mixture(start: RunContext) -> None:
    """Refuse a sink beside one that has written the same batch at least once: no restart would change that."""
    with _sharing:
        beside = [one.name for one in _shared.values() if one.run_id == start.identity.run_id and one.has_no_log]
    if beside:
        raise InvalidInput(
            f'The function of foreachBatch calls the sink "{beside[0]}" with guarantee="at-least-once", and the sink '
            f'"{start.options.name}" with "exactly-once". A checkpoint has one guarantee. Nothing of batch '
            f'{start.batch_id} is written by "{start.options.name}". Give all sinks of the query '
            'guarantee="at-least-once", or each guarantee a query of its own, with a checkpoint of its own.'
        )


def begin(start: RunContext) -> Run:
    """Begin a run: take the sink over, unless the guarantee needs none, or the checkpoint is a shadow of a live one.

    Raises what `Owner.take_over` raises, and InvalidInput for a setting that would break the guarantee, and for a
    batch that was begun with a weaker one.
    """
    query, options = start.query, start.options
    if query is not None:
        spark.refuse_temporary_checkpoint(query)
    text = None if query is None else query.read(REGISTRATION)
    registered = None if text is None else Registration.parse(text)
    if registered is not None and registered.shadow:
        fits(registered, options.name, options.control_topic)
        log.warning("this checkpoint is a shadow of a live one. Nothing is written to any topic")
        return Run(start.identity.run_id, query, start.metrics)
    text = None if query is None else query.read(UNLOGGED)
    unlogged = None if text is None else Unlogged.parse(text)
    if options.guarantee == "at-least-once":
        return RepeatingRun(start, registered, unlogged)
    if unlogged is not None:
        _refuse_a_mixture(start)
        unlogged.refuse_in_doubt(start.batch_id)
    return OwningRun(start, registered, None if unlogged is None else unlogged.begun)
