"""The facts about Spark that the sink must know: the query of a micro-batch. `eos.spark.stages` says how often its
tasks ran.

Everything here reads Spark's own state through the JVM; nothing writes but `register`,
which keeps the sink's name in the query's checkpoint folder. The facts were measured on
Spark 4.3: `MicroBatchExecution` (offsets are logged before the batch function is called),
and `SharedState.activeStreamingQueries` (in the batch function, `streams.active` is empty
because the session is a clone).
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from typing import Any

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from eos.errors import InvalidInput
from eos.spark.checkpoint_files import CheckpointFiles
from eos.spark.query_stop import end_later, ends_later, wrapper_of

Jvm = Any  # py4j objects have no types

_NO_MODULE = re.compile(r"No module named '(?P<package>\w+)[\w.]*'")

JVM_GONE = (Py4JError, OSError)
"""The error of py4j where Spark's JVM has ended, and each query with it."""


@dataclass(frozen=True)
class Query:
    """The streaming query that called the batch function.

    Attributes:
        query_id: stays the same over restarts from one checkpoint.
        run_id: new for each start.
        checkpoint: the root of the query's checkpoint folder, as a Hadoop path.
    """

    query_id: str
    run_id: str
    checkpoint: str
    _execution: Jvm
    _files: CheckpointFiles
    _jvm: Jvm = None
    _current_thread: Jvm = None

    @property
    def name(self) -> str | None:
        """The user's name of the query. None where it has no name."""
        return self._execution.name()  # type: ignore[no-any-return]

    def await_end(self) -> None:
        """Return when the run has ended, in whichever way. Not for the query's own thread."""
        with suppress(Exception):  # it failed, which its own error tells, or Spark's JVM is gone
            self._execution.awaitTermination()

    def is_active(self, failed: BaseException | None = None) -> bool:
        """Tell whether the query runs still; False as soon as `query.stop()` was called. Raises nothing.

        One that ends after the batch in hand is active until then, unless it is stopped meanwhile.

        Args:
            failed: what failed in the batch in hand: it may tell of a stop.
        """
        try:
            return ends_later(self.run_id, self._execution, failed) or bool(self._execution.isActive())
        except JVM_GONE:
            return False

    def offsets(self, batch_id: int) -> str:
        """Return the unchanged text of `offsets/<batch_id>`.

        Spark writes the file before it calls the batch function, and never again
        (`MicroBatchExecution.constructNextBatch`).
        """
        text = self.read(f"offsets/{batch_id}")
        if text is None:
            raise InvalidInput(
                f"The checkpoint {self.checkpoint} has no offsets/{batch_id}, though Spark is running that batch. "
                "Was the checkpoint folder deleted while the query ran? Stop the query and restore it."
            )
        return text

    def read(self, name: str) -> str | None:
        """Return the text of a file in the checkpoint folder, or None where there is none."""
        return self._files.read(name)

    def has_state(self) -> bool:
        """Tell whether there is state in the checkpoint folder."""
        return self._files.exists("state")

    def operators(self) -> int:
        """Count the stateful operators that have a folder in the checkpoint."""
        return next(number for number in count() if not self._files.exists(f"state/{number}"))

    def register(self, name: str, text: str) -> None:
        """Write a small file in the checkpoint folder; a reader sees the old text or the new. Raises NotCommitted."""
        self._files.write(name, text)

    def is_in_batch(self) -> bool:
        """Tell whether a batch runs, and the query does not wait for the next one."""
        return bool(self._execution.status().isTriggerActive())

    def batch_in_hand(self) -> int:
        """Return the id of the batch that Spark planned last: in the batch function, the one that it runs."""
        return int(self._execution.lastExecution().currentBatchId())

    def end_after_batch(self) -> None:
        """Have the query end after the batch in hand, as its trigger `availableNow` does."""
        end_later(self.run_id, self._execution)

    def remove(self, name: str) -> None:
        """Delete a small file in the checkpoint folder, if it is there."""
        self._files.remove(name)

    def end_with(self, why: str | None) -> None:
        """Have the query end with an error, unless another one ends it. None: no longer.

        Of a failure that the batch function swallows Spark learns nothing: it notes the batch, and the last one of a
        run would end the query as if all were well. The error that ended a run is kept in
        `StreamExecution.streamDeathCause`, which nothing else sets before the run has ended: `awaitTermination()`
        raises it, and listeners are told.
        """
        if why is None:
            getattr(self._execution, "streamDeathCause_$eq")(None)
            return
        jvm: Jvm = self._jvm
        words = {"id": self.query_id, "runId": self.run_id, "message": why}
        cause = jvm.org.apache.spark.sql.streaming.StreamingQueryException(
            *(self._execution.toString(), jvm.java.lang.IllegalStateException(why), "", "", "STREAM_FAILED"),
            jvm.PythonUtils.toScalaMap(words),
        )
        getattr(self._execution, "streamDeathCause_$eq")(cause)


def current_query(session: SparkSession | None = None, known: Query | None = None) -> Query | None:
    """Return the streaming query whose batch function runs in this thread, or None outside one.

    The thread names the query. The function can change all else that Spark shows in it: `sc.setJobGroup` and
    `sc.setLocalProperty` replace the names of query and run, and a thread that was made in it inherits them.

    Args:
        session: one of the application; None: the active one.
        known: the query of the batch before; returned again when it is the same run.

    Raises what py4j does.
    """
    if session is None:
        session = SparkSession.getActiveSession() if SparkContext._active_spark_context is not None else None
    if session is None:
        return None
    thread = known._current_thread() if known is not None else _thread_class(session).currentThread()
    if known is not None and thread == known._execution.queryExecutionThread():
        return known
    for execution in _executions(session):
        if thread == execution.queryExecutionThread():
            return _query(session, execution)
    return None


def query_of(session: SparkSession, query_id: str | None = None) -> Query | None:
    """Return the running query whose batch function was given DataFrames of this session, or that has this id.

    None: there is no such query.
    """
    for execution in _executions(session):
        planned = execution.lastExecution()  # Spark 3.5 shows its clone of the session nowhere else
        if planned is None:
            continue
        if session._jsparkSession == planned.sparkSession() or execution.id().toString() == query_id:
            return _query(session, execution)
    return None


def foreach_batch_queries(session: SparkSession) -> list[Query]:
    """Return the queries of the application that have handed a batch to a function of foreachBatch."""
    return [
        _query(session, execution)
        for execution in _executions(session)
        if execution.sink().getClass().getSimpleName() == "ForeachBatchSink" and execution.lastExecution() is not None
    ]


def threads_are_pinned() -> bool:
    """Tell whether a thread of Python has a thread of its own in the JVM, by which `current_query` goes."""
    gateway = SparkContext._gateway
    return gateway is None or isinstance(gateway, ClientServer)


def _executions(session: SparkSession) -> list[Jvm]:
    """Return what runs the queries of the application: each of its sessions knows all of them."""
    active: Jvm = session._jsparkSession.sharedState().activeStreamingQueries()
    return list(active.values())


def _thread_class(session: SparkSession) -> Jvm:
    jvm: Jvm = session._jvm
    return jvm.java.lang.Thread


def checkpoint_of(query: StreamingQuery) -> str:
    """Return the address of a query's checkpoint, as Spark resolved it. Raises InvalidInput as `wrapper_of` does."""
    return str(wrapper_of(query).streamingQuery().resolvedCheckpointRoot())


def is_run_on(session: SparkSession, checkpoint: str) -> bool:
    """Tell whether a query of this application runs on a checkpoint.

    Args:
        checkpoint: its address, qualified as Hadoop does it.
    """
    roots = [str(execution.resolvedCheckpointRoot()).rstrip("/") for execution in _executions(session)]
    return checkpoint.rstrip("/") in roots


def _query(session: SparkSession, execution: Jvm) -> Query:
    jvm: Jvm = session._jvm
    checkpoint = execution.resolvedCheckpointRoot()
    path_class = jvm.org.apache.hadoop.fs.Path
    return Query(
        query_id=execution.id().toString(),
        run_id=execution.runId().toString(),
        checkpoint=checkpoint,
        _execution=execution,
        _files=CheckpointFiles(execution.offsetLog().fileManager(), path_class(checkpoint), path_class),
        _jvm=jvm,
        _current_thread=_thread_class(session).currentThread,
    )


_TEMPORARY = re.compile(r"(^|/)temporary-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/*$")
"""The folder that Spark makes for a query without a checkpoint location (ResolveWriteToStream): on the driver's
machine, or by a setting on the default file system, whichever that is."""


def refuse_temporary_checkpoint(query: Query) -> None:
    """Raise InvalidInput for a query whose checkpoint goes with its process."""
    if _TEMPORARY.search(query.checkpoint):
        raise InvalidInput(
            f"The query has no checkpoint of its own: {query.checkpoint} is a temporary folder. After a restart "
            "neither Spark nor the sink would know what is written already. Give the query a place that stays: "
            '.option("checkpointLocation", "...").'
        )


def refuse_speculation(session: SparkSession) -> None:
    """Raise InvalidInput where Spark may run one task twice at the same time."""
    if session.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
        raise InvalidInput(
            "spark.speculation is true: Spark would run slow tasks twice at the same time, and both copies would write "
            "into the batch's transaction. Set spark.speculation=false for this application."
        )


def result_limit(session: SparkSession) -> int | None:
    """Return the bytes of results at which Spark gives up a job (1 GiB by default); None: it never does."""
    conf: Jvm = session.sparkContext._jsc.getConf()
    return int(conf.getSizeAsBytes("spark.driver.maxResultSize", "1g")) or None


def driver_heap(session: SparkSession) -> int:
    """Return the bytes that the heap of the driver's JVM can grow to."""
    jvm: Jvm = session._jvm
    return int(jvm.java.lang.Runtime.getRuntime().maxMemory())


def reason(error: Exception, limit: int = 1_000) -> str:
    """Return why a Spark job failed, without stack traces.

    A Python traceback, of a worker or of the function of `foreachBatch`, ends with the reason; a Java exception's
    message begins with it. The part of a query's error about the query, its offsets and its plan is left out.
    """
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString()).split("\n\tat ")[0][:limit]
    text = str(error).split("\n\nJVM stacktrace:")[0].split("\n=== Streaming Query ===")[0].strip()
    if isinstance(error, PythonException) or "Traceback (most recent call last):\n" in text:
        lines = [line for line in text.splitlines() if line and not line.startswith((" ", "Traceback", "\tat "))]
        text = lines[-1] if lines else text
    return text[:limit] + _python_of_tasks(text)


def _python_of_tasks(text: str) -> str:
    """Return advice where tasks lack a module that the driver has: Spark runs them by another Python."""
    missing = _NO_MODULE.search(text)
    if missing is None or find_spec(missing["package"]) is None:
        return ""
    return (
        ". The driver's Python has this module, and the Python that runs the tasks does not. Set the environment "
        f'variable PYSPARK_PYTHON to "{sys.executable}" before the Spark session is made, or install the package for '
        "the Python of the executors"
    )
