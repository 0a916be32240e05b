"""Queries that end with a savepoint, and savepoints that are made again and again."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from statestore import InvalidInput, Unavailable, periodic_savepoints, savepoints, stop_with_savepoint
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.needs import committed
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints.periodic import Schedule
from tests.conftest import MakeTopic
from tests.integration.statestore.in_step_job import CountingJob, newest, written
from tests.reading import values_of
from tests.waiting import PATIENCE_S, until, until_batch


def job_of(pulsar: Any, make_topic: MakeTopic) -> CountingJob:
    return CountingJob(pulsar.service_url, make_topic("counts"), f"s{uuid.uuid4().hex[:10]}")


def runs(query: StreamingQuery) -> bool:
    return query.isActive


def test_output_and_state_are_in_step_in_the_savepoint_that_a_query_ends_with(
    spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic
) -> None:
    job = job_of(pulsar, make_topic)
    live, resumed = f"{bk}/live", f"{bk}/resumed"
    query = job(spark, live, {"processingTime": "0 seconds"})
    until_batch(query, 1)
    with pytest.raises(InvalidInput, match="cannot name a savepoint"):
        stop_with_savepoint(query, "no name")
    assert runs(query)
    made = stop_with_savepoint(query, f"{job.name}-end")
    assert not runs(query)
    assert query.exception() is None, "not one batch was cut short"
    assert made.batch_id == newest(job.output) == max(committed(HadoopFiles(Hadoop.of(spark), live)))
    job.close()

    savepoints.restore(made.name, resumed)
    idle = job(spark, resumed, {"processingTime": "1 hour"})
    until_batch(idle, made.batch_id + 1)
    with pytest.raises(InvalidInput, match=f"There is a savepoint {made.name} already. The query runs on"):
        stop_with_savepoint(idle, made.name)
    assert runs(idle)
    began = time.monotonic()
    later = stop_with_savepoint(idle, f"{job.name}-later")
    assert time.monotonic() - began < 300, "it doesn't wait for the next trigger"
    job.close()
    assert later.batch_id == newest(job.output) == made.batch_id + 1
    assert sorted(values_of(pulsar.service_url, job.topic)) == written(range(later.batch_id + 1))
    for one in (made, later):
        savepoints.delete(one.name, bk)


def held(
    spark: SparkSession, checkpoint: str, begun: list[int], ended: list[int], go_on: threading.Event
) -> StreamingQuery:
    def each(rows: DataFrame, batch: int) -> None:
        begun.append(batch)
        go_on.wait(PATIENCE_S)
        rows.count()
        ended.append(batch)

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rows.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="0 seconds").start()


def test_the_batch_in_hand_ends_however_long_it_takes(spark: SparkSession, bk: str) -> None:
    begun: list[int] = []
    ended: list[int] = []
    name = f"s{uuid.uuid4().hex[:10]}"
    go_on = threading.Event()
    query = held(spark, f"{bk}/slow", begun, ended, go_on)
    until(lambda: begun)
    with pytest.raises(Unavailable, match=r"has not ended in 0.2 s.* Call again to wait"):
        stop_with_savepoint(query, name, timeout_s=0.2)
    threading.Timer(1, go_on.set).start()  # while the next call waits
    made = stop_with_savepoint(query, name)
    assert begun == ended == [0]
    assert made.batch_id == 0
    savepoints.delete(name, bk)


def test_savepoints_are_made_again_and_again_and_the_newest_kept(
    spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic
) -> None:
    job = job_of(pulsar, make_topic)
    live, prefix = f"{bk}/live", f"p{uuid.uuid4().hex[:10]}"
    query = job(spark, live, {"processingTime": "0 seconds"})
    until_batch(query, 0)
    other = savepoints.create(f"{prefix}-by-hand", live)
    periodic = periodic_savepoints(query, minutes=1 / 60, keep=2, prefix=prefix)

    def stamped() -> list[savepoints.Savepoint]:
        mine = [one for one in savepoints.list_savepoints(bk) if one.name.startswith(f"{prefix}-")]
        return [one for one in mine if one.name != other.name and one.state == "ready"]

    def third() -> bool:
        names.update(one.name for one in stamped())
        return len(names) >= 3

    names: set[str] = set()
    until(third, lambda: f"{names} only: {query.exception()}", patience_s=200)
    periodic.stop()
    query.stop()
    job.close()
    kept = stamped()
    assert len(kept) == 2
    assert [one.name for one in kept] == sorted(one.name for one in kept), "the newest"
    assert other.name in [one.name for one in savepoints.list_savepoints(bk)], "it is not of the schedule"

    # Nothing was committed since: no savepoint takes the place of one of an earlier batch.
    Schedule(live, 2, prefix, now=lambda: time.time() + 10).run_once()
    before = [one.name for one in stamped()]
    assert Schedule(live, 2, prefix, now=lambda: time.time() + 20).run_once().made is None
    assert [one.name for one in stamped()] == before
    for one in (*stamped(), other):
        savepoints.delete(one.name, bk)
