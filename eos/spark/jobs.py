"""Runs the sink's Spark jobs, with as few calls into the JVM as they need.

A call from Python into the JVM takes some 0.3 ms, and what DataFrame's own methods do around a job takes dozens of
them. Beside a micro-batch of a few rows that is much: `collect` and `ArrowFunction` do what `DataFrame.toArrow` and
`DataFrame.mapInArrow` do in PySpark 4.3, without asking again for what is known.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, Any

import pyarrow as pa
from pyspark.serializers import read_int
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StructType

from eos.spark.pyspark_api import PythonEvalType, local_connect_and_auth, map_in_arrow

_SAYS_WHY_S = 60
"""Seconds for Spark to say whether a job failed, once it has sent all that it had."""

COLLECT_EVERY_S = 300.0
"""Between two collections: each holds the driver up for about a tenth of a second."""

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function over the record batches of one Spark partition, as `mapInArrow` takes it."""


class ArrowFunction:
    """A function for `mapInArrow` that goes to the JVM once, not for each DataFrame; for one SparkContext."""

    def __init__(self, task: Task, schema: StructType) -> None:
        make: Any = pandas_udf  # its types don't know the kind of function that mapInArrow makes of it
        self._udf = make(task, returnType=schema, functionType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)

    def planned(self, df: DataFrame) -> DataFrame:
        """Return the DataFrame of what the function yields for the partitions of `df`: the next action runs at once."""
        columns = self._udf(*[df[name] for name in df.columns])
        job = DataFrame(map_in_arrow(df._jdf, columns), df.sparkSession)
        job._jdf.queryExecution().executedPlan()
        return job


def collect(df: DataFrame, limit: int) -> pa.Table | None:
    """Run the DataFrame over all its partitions; return its rows, or None where it has more than `limit`.

    Rows past the limit reach the driver's JVM, up to spark.driver.maxResultSize, but aren't kept here.
    """
    address, secret, server = df._jdf.collectAsArrowToPython()
    try:
        stream, sock = local_connect_and_auth(address, secret)
        sock.settimeout(None)  # how long the job takes can't be foretold
        with sock, stream:
            return _few(stream, limit)
    finally:
        # It raises why the job failed. A thread of Spark's that died, as of a full heap, has ended the rows as if these
        # were all, and never says so.
        server.getResult(_patience(df.sparkSession._jvm))


@lru_cache(maxsize=1)
def _patience(jvm: Any) -> Any:
    return jvm.scala.concurrent.duration.Duration.create(_SAYS_WHY_S, "seconds")


def _few(stream: IO[bytes], limit: int) -> pa.Table | None:
    """Read what collectAsArrowToPython writes: batches as the partitions end, then the places they belong in."""
    reader = pa.ipc.open_stream(stream)
    batches, rows = [], 0
    for batch in reader:
        rows += batch.num_rows
        if rows <= limit:
            batches.append(batch)
    integer: Callable[[IO[bytes]], int] = read_int
    places = [integer(stream) for _ in range(integer(stream))]  # -1 of them after a failure
    if rows > limit:
        return None
    return pa.Table.from_batches([batches[place] for place in places], reader.schema)


@contextmanager
def local_property(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Give a local property to the tasks of the jobs that this thread starts within the block."""
    session.sparkContext.setLocalProperty(name, value)
    try:
        yield
    finally:
        session.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]


def run_to_end(df: DataFrame) -> int:
    """Run the DataFrame over all its partitions, throw the rows away, and return how many there were.

    A batch that is already committed must still advance state, watermark and state
    checkpoint: Spark ends a query whose stateful batch was not run over all partitions
    (STATE_STORE_COMMIT_VALIDATION_FAILED).
    """
    return int(df._jdf.queryExecution().toRdd().count())


class OldGarbage:
    """Frees objects in Spark's JVM in time that Python no longer uses.

    A Java object of py4j and the methods that were called of it refer to each other (`JavaObject._methods`,
    `JavaMember.container`), so Python frees it by its collector alone, and until then the JVM keeps what it stands for:
    of each batch a plan. An object that outlives a batch's second collection is old, and Python looks at old objects
    once they have grown by a quarter: in a driver that does little else that is once in a thousand batches.

    Args: seconds between two collections; a clock.
    """

    def __init__(self, every_s: float = COLLECT_EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._last = clock()

    def collect(self) -> None:
        """Collect all generations if it is time to, and the caller's program has Python collect at all."""
        now = self._clock()
        if now - self._last >= self._every_s and gc.isenabled():
            self._last = now
            gc.collect()
