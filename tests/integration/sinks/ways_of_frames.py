"""Ways in which people use threads, and what Spark keeps for each, and what they do with the DataFrame."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from pyspark import InheritableThread
from pyspark.sql import DataFrame

import eos
from tests.integration.sinks.ways import BAD, HOLE, IDENTITY, IN_THE_THREAD, Batch, Use, halves, sink_way, way


@sink_way()
def in_a_job_group_of_the_users(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    df.sparkSession.sparkContext.setJobGroup(f"batch {batch_id}", "a name for the UI", interruptOnCancel=True)
    sink(df, batch_id)


@sink_way(soak=True)
def with_local_properties_of_the_users(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    for name in ("sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"):
        df.sparkSession.sparkContext.setLocalProperty(name, "mine")
    sink(df, batch_id)


@sink_way()
def other_jobs_are_cancelled(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    df.sparkSession.sparkContext.cancelAllJobs()
    df.sparkSession.sparkContext.cancelJobGroup("some other")
    sink(df, batch_id)


def in_thread(use: Use, kind: type[threading.Thread]) -> Batch:
    sink = use.sink()

    def write(df: DataFrame, batch_id: int) -> None:
        with suppress(eos.EosError):
            sink(df, batch_id)

    def batch(df: DataFrame, batch_id: int) -> None:
        thread = kind(target=write, args=(df, batch_id))
        thread.start()
        thread.join()

    return batch


@way(IN_THE_THREAD)
def in_a_thread(use: Use) -> Batch:
    return in_thread(use, threading.Thread)


@way(IN_THE_THREAD, soak=True)
def in_a_thread_that_inherits(use: Use) -> Batch:
    return in_thread(use, InheritableThread)


@way(IN_THE_THREAD, soak=True)
def in_a_pool_whose_results_nobody_takes(use: Use) -> Batch:
    sink, pool = use.sink(), ThreadPoolExecutor(2)

    def batch(df: DataFrame, batch_id: int) -> None:
        for part in halves(df):
            pool.submit(sink, part, batch_id).exception()

    return batch


@way(HOLE, soak=True)
def of_wrong_columns_in_a_pool(use: Use) -> Batch:
    sink, pool = use.sink(), ThreadPoolExecutor(2)
    return lambda df, batch_id: pool.submit(sink, df.selectExpr(*BAD), batch_id).exception()


@way(IN_THE_THREAD)
def of_the_application_s_session_in_a_pool(use: Use) -> Batch:
    sink, pool = use.sink(), ThreadPoolExecutor(2)

    def batch(df: DataFrame, batch_id: int) -> None:
        rows = [tuple(row) for row in df.select("value").collect()]
        pool.submit(sink, use.spark.createDataFrame(rows, "value string"), batch_id).exception()

    return batch


def with_identity(use: Use, df: DataFrame, batch_id: int) -> None:
    with suppress(eos.EosError), use.sink().batch(batch_id, eos.Identity("mine", "run", f"{batch_id}")) as txn:
        txn.write(df)


@way(IDENTITY, soak=True)
def with_an_identity(use: Use) -> Batch:
    return lambda df, batch_id: with_identity(use, df, batch_id)


@way(IDENTITY, soak=True)
def with_an_identity_in_a_pool(use: Use) -> Batch:
    pool = ThreadPoolExecutor(2)

    def batch(df: DataFrame, batch_id: int) -> None:
        for part in halves(df):
            pool.submit(with_identity, use, part, batch_id).exception()

    return batch


@sink_way(IN_THE_THREAD, soak=True)
def in_a_thread_of_asyncio(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    asyncio.run(asyncio.to_thread(sink, df, batch_id))


@way(soak=True)
def in_a_coroutine(use: Use) -> Batch:
    sink = use.sink()

    async def write(df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)

    return lambda df, batch_id: asyncio.run(write(df, batch_id))


# ---- what is done with the DataFrame


@sink_way()
def cached_and_let_go(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    df.persist()
    sink(df, batch_id)
    df.unpersist()


@sink_way(soak=True)
def let_go_before_the_write(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    cached = df.cache()
    cached.count()
    cached.unpersist(blocking=True)
    sink(cached, batch_id)


@sink_way(soak=True)
def collected_first(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    rows = [tuple(row) for row in df.select("value").collect()]
    sink(df.sparkSession.createDataFrame(rows, "value string"), batch_id)


@sink_way()
def by_pandas(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
    sink(df.sparkSession.createDataFrame(df.select("value").toPandas(), "value string"), batch_id)


@way()
def of_another_session(use: Use) -> Batch:
    sink, other = use.sink(), use.spark.newSession()

    def batch(df: DataFrame, batch_id: int) -> None:
        rows = [tuple(row) for row in df.select("value").collect()]
        sink(other.createDataFrame(rows, "value string"), batch_id)

    return batch


@way("streaming")
def a_streaming_frame(use: Use) -> Batch:
    sink = use.sink()
    rate = use.spark.readStream.format("rate").load().selectExpr("cast(value as string) value")
    return lambda df, batch_id: sink(rate, batch_id)


@way("was called from foreachBatch")
def by_eos_write(use: Use) -> Batch:
    return lambda df, batch_id: eos.write(df, use.service_url, job_id=use.name, topic=use.topic)
