"""Run a job's query in the test's own process, where its errors are still objects."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import eos
from tests.crash.job import Job, start


class Enough(Exception):
    """The query has come as far as it should."""


def run_here(spark: SparkSession, job: Job, *, last: int | None = None, unnoted: int | None = None) -> eos.Sink:
    """Run the query with a new sink over its input, or into the batch after `last`; return the closed sink.

    Of the batch `unnoted` the sink has returned, but Spark doesn't get to note it.
    What the sink raises is raised as it is, and not as Spark's words about it.
    """
    sink = eos.sink(job.service_url, topic=job.topic, name=job.name, **job.options)
    raised: list[Exception] = []

    def write(df: DataFrame, batch_id: int) -> None:
        try:
            if last is not None and batch_id > last:
                raise Enough
            sink(df, batch_id)
            if batch_id == unnoted:
                raise Enough
        except Exception as error:
            raised.append(error)
            raise

    query = start(spark, job, write)
    try:
        query.awaitTermination()
    except Exception:
        if not raised:
            raise
        if not isinstance(raised[0], Enough):
            raise raised[0] from None
    finally:
        sink.close()
    return sink
