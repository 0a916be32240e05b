"""What the sink must know of Spark: the query behind a micro-batch. How often its tasks ran tells `eos.spark.stages`.

Everything here reads Spark's own state through the JVM; nothing writes but `register`,
which keeps the sink's name in the query's checkpoint folder. The facts were measured on
Spark 4.3: `MicroBatchExecution` (offsets are logged before the batch function is called),
and `SharedState.activeStreamingQueries` (in the batch function, `streams.active` is empty
because the session is a clone).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from eos.errors import InvalidInput
from eos.spark.checkpoint_files import CheckpointFiles
from eos.spark.ending import ends_later

Jvm = Any  # py4j objects have no types

JVM_GONE = (Py4JError, OSError)
"""What py4j raises where Spark's JVM has ended, and each query with it."""


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

    @property
    def name(self) -> str | None:
        """What the user calls the query; None where it has no name."""
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
        """Return the text of `offsets/<batch_id>`, word for word.

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

    def register(self, name: str, text: str) -> None:
        """Write a small file in the checkpoint folder; a reader sees the old text or the new. Raises NotCommitted."""
        self._files.write(name, text)


def current_run() -> str | None:
    """Return the id of the run whose batch function is running in this thread, or None outside one. Raises nothing."""
    context = SparkContext._active_spark_context
    try:
        if context is None or context.getLocalProperty("sql.streaming.queryId") is None:
            return None
        return context.getLocalProperty("spark.jobGroup.id")
    except JVM_GONE:
        return None


def current_query(session: SparkSession, known: Query | None = None) -> Query | None:
    """Return the streaming query whose batch function is running, or None outside one.

    Args:
        session: that of the DataFrame in the batch function.
        known: the query of the batch before; returned again when it is the same run.
    """
    context = session.sparkContext
    query_id = context.getLocalProperty("sql.streaming.queryId")
    if query_id is None:
        return None
    # The stream's thread runs its jobs in a group named for the run (StreamExecution.runStream).
    if (
        known is not None
        and known.query_id == query_id
        and context.getLocalProperty("spark.jobGroup.id") == known.run_id
    ):
        return known
    active: Jvm = session._jsparkSession.sharedState().activeStreamingQueries()
    for execution in list(active.values()):
        if execution.id().toString() == query_id:
            return _query(session, execution, query_id)
    raise InvalidInput(
        f"The streaming query {query_id} is not known to this Spark session. The sink needs Spark 4 in classic mode "
        "(not Spark Connect), and must be called by foreachBatch."
    )


def checkpoint_of(query: StreamingQuery) -> str:
    """Return the address of a query's checkpoint, as Spark resolved it. The query is of classic Spark."""
    own: Jvm = query
    return str(own._jsq.streamingQuery().resolvedCheckpointRoot())


def is_run_on(session: SparkSession, checkpoint: str) -> bool:
    """Tell whether a query of this application runs on a checkpoint.

    Args:
        checkpoint: its address, qualified as Hadoop does it.
    """
    active: Jvm = session._jsparkSession.sharedState().activeStreamingQueries()
    roots = [str(execution.resolvedCheckpointRoot()).rstrip("/") for execution in list(active.values())]
    return checkpoint.rstrip("/") in roots


def _query(session: SparkSession, execution: Jvm, query_id: str) -> Query:
    jvm: Jvm = session._jvm
    checkpoint = execution.resolvedCheckpointRoot()
    path_class = jvm.org.apache.hadoop.fs.Path
    return Query(
        query_id=query_id,
        run_id=execution.runId().toString(),
        checkpoint=checkpoint,
        _execution=execution,
        _files=CheckpointFiles(execution.offsetLog().fileManager(), path_class(checkpoint), path_class),
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
    message begins with it. What a query's error shows of the query, its offsets and its plan, is left out.
    """
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString()).split("\n\tat ")[0][:limit]
    text = str(error).split("\n\nJVM stacktrace:")[0].split("\n=== Streaming Query ===")[0].strip()
    if isinstance(error, PythonException) or "Traceback (most recent call last):\n" in text:
        lines = [line for line in text.splitlines() if line and not line.startswith((" ", "Traceback", "\tat "))]
        text = lines[-1] if lines else text
    return text[:limit]
