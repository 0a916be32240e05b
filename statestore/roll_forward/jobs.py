"""A user's streaming job, as the tools start it: on a checkpoint and with a trigger that they choose."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from statestore.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Job(Protocol):
    """Starts the query of a job.

    def start(spark, checkpoint, trigger):
        ticks = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
        sink = eos.sink("pulsar://localhost:6650", topic="persistent://public/default/ticks", name="ticks")
        writer = ticks.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()
    """

    def __call__(self, spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        """Start it, and return without waiting.

        Args:
            spark: a session that knows `bk://`.
            checkpoint: the checkpoint location to use, in place of the job's own.
            trigger: keywords for `.trigger(…)`, in place of the job's own.
        """
        ...


def load_job(where: str) -> Job:
    """Import a job by its name, `package.module:function`, also from the working directory.

    Raises:
        InvalidInput: there is no such module or function, it fails to import, or it doesn't take what a job takes.
    """
    module_name, _, name = where.partition(":")
    if not module_name or not name:
        raise InvalidInput(f"{where!r} names no job: expected package.module:function, such as jobs.flights:start")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module_name), name)
    except Exception as error:
        raise InvalidInput(
            f"The job {where} can't be imported: {type(error).__name__}: {error}. It must be a function in a module on "
            "Python's path or in the working directory"
        ) from error
    try:
        inspect.signature(found).bind(None, "", {})
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{where} is not a job. It must be a function that takes a Spark session, a checkpoint location and a "
            f"mapping for .trigger(…), and returns the started query ({error})"
        ) from error
    return cast(Job, found)
