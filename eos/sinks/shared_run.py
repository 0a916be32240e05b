"""What all sinks of one name share in one run of a query: one owner in a process, however many sinks are made.

People make a sink inside the function of `foreachBatch`, make two of one name, close one in the middle of a batch, and
swallow its errors. So whether a batch was taken, and which one failed, is known here and not by a sink; the producers
are here too, so that a sink for each batch costs no more than one for all. What failed is also noted in the query's
checkpoint, where the next run finds it, and the query ends with that error even where user code has swallowed it in the
last batch: Spark would note the batch as done, and its rows would be lost without a word.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from eos.commit.control_topic import skip_command
from eos.commit.registration import (
    DEDUPLICATED,
    FAILED,
    REGISTRATION,
    UNLOGGED,
    Failure,
    Registration,
    Unlogged,
    fits,
    refuse_deduplicated,
)
from eos.delivery.delivery import Write
from eos.errors import EosError, Fenced, InvalidInput, ReplayFailed
from eos.pulsar.protocol.topics import namespace_of
from eos.sinks.at_least_once import RepeatingRun
from eos.sinks.error_translation import before_the_log
from eos.sinks.metrics import Metrics
from eos.sinks.options import SinkOptions
from eos.sinks.run import OwningRun, Run, RunContext
from eos.spark import query as spark

log = logging.getLogger("eos.sink")

Key = tuple[str, str, str, str]

_shared: Final[weakref.WeakValueDictionary[Key, SharedRun]] = weakref.WeakValueDictionary()
_sharing = threading.Lock()


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


class SharedRun:
    """One run of a query on one control topic.

    Attributes:
        run_id: Spark's.
        query: the streaming query; None outside one.
    """

    def __init__(self, options: SinkOptions, run_id: str, query: spark.Query | None) -> None:
        self.run_id, self.query = run_id, query
        self._name, self._namespace = options.name, namespace_of(options.control_topic)
        self._run: Run | None = None
        self._options = options
        self._taken: dict[int, str] = {}
        self._failed: Failure | None = None  # in this run, until the batch was taken again
        self._noted: Failure | None = None  # in the checkpoint, by this run or an earlier one
        self._written: int | None = None  # the newest batch, by this run
        self._told = False  # the query is to end with the failure
        self._turn = threading.RLock()

    def take(self, start: RunContext, writes: Sequence[Write]) -> None:
        """Give a batch to the run that is open, or to a new one. Raises what `Sink.__call__` does.

        Args: what a run would begin with; what is to be written.
        """
        with self._turn:
            self._refuse_a_hole(start.batch_id)
            run = self._open(start.metrics, start.options) or self._begin(start)
            run.take(start.batch_id, writes, start.identity)
            self._written = start.batch_id
            self._succeeded(start.batch_id)

    def failed(self, batch_id: int, error: BaseException, *, stopped: bool = False) -> None:
        """Note a batch that failed: no later one is taken, and the query is to end with the error. Raises nothing.

        Args: the batch; what its call raises; whether the query was stopped, which is no error to end with.
        """
        words = str(error) if isinstance(error, EosError) else f"{type(error).__name__}: {error}"
        first = self._failed or self._noted
        if first is None or batch_id <= first.batch_id:
            replayed = isinstance(error, ReplayFailed)
            partly = self._written is not None and batch_id <= self._written  # a thread may be late
            self._note(Failure(self._name, batch_id, self.run_id, words[:1_000], replayed, partly))
            if isinstance(error, Fenced):  # for good: the run itself refuses whatever comes
                self._failed = None
        if self.query is not None and not stopped:
            with _logging(f"batch {batch_id} failed, and the query could not be told"):
                self.query.end_with(f"Batch {batch_id} failed: {words}")
                self._told = True

    def close(self) -> None:
        """Close what is open. What was taken stays known."""
        with self._turn:
            if self._run is not None:
                self._run.close()
                self._run = None

    def end_with_query(self) -> None:
        """Wait for the end of the query, and close. Logs a failure that it has passed."""
        assert self.query is not None, "there is no query to wait for"
        self.query.await_end()
        with self._turn:
            self.close()
            failed = self._failed
        with suppress(*spark.JVM_GONE):
            if failed is not None and self.query.read(f"commits/{failed.batch_id}") is not None:
                log.error("%s", self._lacks(failed, "the query has ended"))

    def _note(self, failure: Failure) -> None:
        self._failed = failure
        if self.query is not None:
            self._noted = failure
            with _logging(f"batch {failure.batch_id} failed, and could not be noted in the checkpoint"):
                self.query.register(FAILED, failure.text)

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
                self._look_back(self.query, run, start.batch_id)
            except BaseException:
                run.close()
                raise
        self._run, self._options = run, start.options
        if self.query is None:  # in a thread of its own, since closing waits for the broker
            weakref.finalize(self, threading.Thread(target=run.close, daemon=True).start).atexit = False
        return run

    def _look_back(self, query: spark.Query, run: Run, batch_id: int) -> None:
        """Refuse to go on behind a batch that failed in an earlier run, and whose error was swallowed."""
        text = query.read(FAILED)
        found = None if text is None else Failure.parse(text)
        if found is None or found.name != self._name or not run.writes:
            return
        self._noted = found
        newest = run.newest
        logged = newest is not None and newest.batch_id >= found.batch_id
        in_output = logged and not found.replayed and not found.partly
        rewritten = run.jumped is not None and run.jumped[0] <= found.batch_id <= run.jumped[1]
        if found.batch_id < batch_id and not in_output and not rewritten:
            raise InvalidInput(self._lacks(found, f"batch {batch_id} is not written"))

    def _succeeded(self, batch_id: int) -> None:
        """Forget what failed before: the batch was written after all, or the log has it."""
        self._failed = None
        if self.query is None:
            return
        if self._noted is not None and batch_id >= self._noted.batch_id:
            self._noted = None
            with _logging(f"{FAILED} could not be deleted from the checkpoint"):
                self.query.remove(FAILED)
        if self._told:
            self._told = False
            with _logging("the query could not be told that its batch was written after all"):
                self.query.end_with(None)

    def _refuse_a_hole(self, batch_id: int) -> None:
        """Take no batch after one that failed: Spark goes on only where the failure was swallowed."""
        first = self._failed
        if first is not None and first.batch_id < batch_id:
            raise InvalidInput(self._lacks(first, f"Batch {batch_id} is not written"))

    def _lacks(self, failed: Failure, what: str) -> str:
        """Say that a batch is missing, and the ways out."""
        batch, lacking = failed.batch_id, "the query's state" if failed.replayed else "the output"
        told = (
            f"{what[0].upper()}{what[1:]}: batch {batch} failed in run {failed.run_id} of the query, and its error did "
            f"not end the query, so batch {batch} would be missing from {lacking}. The error was: {failed.error} "
            "Let the sink's errors leave foreachBatch. "
        )
        if failed.partly:
            return (
                f"{told}The rows of the first call are committed, those of the second one are not, and no replay "
                f"writes them. Write them by hand if they are needed, delete {FAILED} from the checkpoint, and start "
                "the query again."
            )
        command = skip_command(self._name, self._namespace, batch)
        if self._options.guarantee != "exactly-once" or failed.replayed:
            command = f"delete {FAILED} from the checkpoint"
        return (
            f"{told}Have Spark run batch {batch} again: stop the query, delete commits/{batch} and all that is newer "
            f"than batch {batch} from the folders `commits` and `offsets` of the checkpoint, and start it again. "
            f"Or go on without it: `{command}`."
        )


@contextmanager
def _logging(what: str) -> Iterator[None]:
    """Log what fails in the block, for which no batch is to fail."""
    try:
        yield
    except Exception as error:
        log.warning("%s: %s", what, spark.reason(error))


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
        log.warning("this checkpoint is a shadow of a live one: nothing is written to any topic")
        return Run(start.identity.run_id, query, start.metrics)
    text = None if query is None else query.read(UNLOGGED)
    unlogged = None if text is None else Unlogged.parse(text)
    if options.guarantee == "at-least-once":
        return RepeatingRun(start, registered, unlogged)
    if unlogged is not None:
        unlogged.refuse_in_doubt(start.batch_id)
    without = [] if unlogged is None else [unlogged.begun]
    if query is not None:
        without.append(refuse_deduplicated(query.read(DEDUPLICATED), start.batch_id))
    return OwningRun(start, registered, max(without, default=None))
