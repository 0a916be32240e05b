"""Ending a streaming query in good order: after the batch in hand, not in the middle of it as `query.stop()` does.

Spark asks before each batch whether the query is still active; its own trigger `availableNow` ends a query by saying
that it isn't (MicroBatchExecution.executeOneBatch sets the state TERMINATED). The same is done here from outside. The
batch in hand runs to its end and is noted. One that Spark has planned and not begun is not run: it finds the query
ended, and interrupts itself before it calls the sink (MicroBatchExecution.runBatch).

The query may still be stopped meanwhile, and that is to cut the batch short. Its state tells nothing then, since it is
that of an ended query already. But a stop cancels the run's jobs and interrupts its thread
(StreamExecution.interruptAndAwaitExecutionThreadTermination): the thread shows that, or what it was waiting for in the
JVM has failed with it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from eos.errors import InvalidInput

_LOOK_S = 0.1
_QUIET_LOOKS = 3

_INTERRUPTED = re.compile(r"Interrupted(IO)?Exception|ClosedByInterruptException")

_asked: dict[str, bool] = {}
"""Runs that were asked to end after the batch in hand, and whether each was stopped since."""


def ends_later(run_id: str, execution: Any, failed: BaseException | None = None) -> bool:
    """Tell whether a run was asked to end after the batch in hand, and goes on until then.

    Args:
        run_id: the run's.
        execution: the run's StreamExecution.
        failed: what failed in the batch in hand: a stop may have made it fail.

    Returns:
        False: it was not asked, has ended, or was stopped since.
    """
    if _asked.get(run_id) is not False:
        return False
    thread = execution.queryExecutionThread()
    if thread.isInterrupted() or any(_tells_of_a_stop(one, run_id) for one in _chain(failed)):
        _asked[run_id] = True
        return False
    return bool(thread.isAlive())


def end_later(run_id: str, execution: Any) -> None:
    """Have a run end after the batch in hand. Args: the run's id; its StreamExecution."""
    _asked.setdefault(run_id, False)
    terminate(execution)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _tells_of_a_stop(error: BaseException, run_id: str) -> bool:
    text = str(error)
    return _INTERRUPTED.search(text) is not None or ("cancelled" in text and run_id in text)


def wrapper_of(query: StreamingQuery) -> Any:
    """Return what the query is in Spark's JVM. Raises InvalidInput for one of Spark Connect, or for another object."""
    wrapper: Any = getattr(query, "_jsq", None)
    if wrapper is None:
        raise InvalidInput(
            f"{query!r} is not a query of Spark in classic mode (not Spark Connect), and its checkpoint and batches "
            "are not known here"
        )
    return wrapper


def end_after_batch(query: StreamingQuery, timeout_s: float) -> bool:
    """End a query after the batch in hand; nothing of that batch is cut short.

    Args:
        query: of a Spark session in this process. One that has ended already is none to end.
        timeout_s: how long the batch may take.

    Returns:
        Whether it has ended. False: its time is over, and it ends after the batch all the same. Call again to wait on,
        or stop it: then the batch is cut short, as by any stop.

    Raises:
        InvalidInput: it is not a query of classic Spark.
    """
    wrapper = wrapper_of(query)
    execution: Any = wrapper.streamingQuery()
    run_id, thread = str(execution.runId().toString()), execution.queryExecutionThread()
    end_later(run_id, execution)
    deadline, quiet = time.monotonic() + timeout_s, 0
    while thread.isAlive():
        # Between two triggers it sleeps, maybe for hours, and no further batch begins. It can be woken at once.
        quiet = 0 if wrapper.status().isTriggerActive() else quiet + 1
        if quiet >= _QUIET_LOOKS:
            query.stop()
            break
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    _asked.pop(run_id, None)
    return True


def terminate(execution: Any) -> None:
    """Set a query's state to the one that its trigger ends it by."""
    state = execution.state()
    terminated = _terminated(state)
    if str(state.get().toString()) != str(terminated.toString()):
        state.set(terminated)


def _terminated(state: Any) -> Any:
    """Spark's word for a query that has ended; a Scala object beside that of the state it is in."""
    from pyspark import SparkContext

    package = str(state.get().getClass().getName()).rpartition(".")[0]
    jvm: Any = SparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    kind = jvm.java.lang.Class.forName(f"{package}.TERMINATED$", True, loader)
    return kind.getField("MODULE$").get(None)
