"""After a try that is never made again no partition is left that readers can't pass."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eos
from eos.steps import Phase, Step
from tests.crash.giving_up import Round
from tests.crash.moments import first, wait_for
from tests.frozen import freed, frozen
from tests.waiting import until

PARTITIONS = 2
LATER = 20
"""Rounds after which a topic is looked at for the first time."""


@dataclass(frozen=True)
class LateFrame:
    """Holds the first frame of a task back until the test has seen the abort."""

    folder: str
    driver: int

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if os.getpid() == self.driver or step is not Step.FIRST_SEND:
            return
        if phase == "before" and first(self.folder, "about to send"):
            wait_for(Path(self.folder, "aborted"))
        elif phase == "after":
            first(self.folder, "sent")


@contextmanager
def workers_outlive_their_task(spark: SparkSession) -> Iterator[None]:
    """Let the Python worker of a task that is killed go on for as long as a busy machine may need to abort its batch.

    Spark ends the worker two seconds after its task (`spark.python.task.killTimeout`, read when a task starts).
    """
    context: Any = spark.sparkContext._jsc
    conf = context.sc().conf()
    conf.set("spark.python.task.killTimeout", "300s")
    try:
        yield
    finally:
        conf.remove("spark.python.task.killTimeout")


@pytest.mark.parametrize("rows_name_topics", [False, True])
def test_a_frame_that_comes_after_a_stop_holds_no_reader_up(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, rows_name_topics: bool
) -> None:
    """Where rows name a new topic, the driver does not know it: the admin API does."""
    topic = make_topic("late-frame", partitions=PARTITIONS)
    late = LateFrame(str(tmp_path / "moments"), os.getpid())
    to: dict[str, Any] = {"admin_url": pulsar.admin_url} if rows_name_topics else {"topic": topic}
    sink = eos.sink(pulsar.service_url, name=topic.rsplit("/")[-1], small_batch_rows=0, observer=late, **to)
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1).load()
    columns = ["cast(value as string) value", *([f"'{topic}' topic"] if rows_name_topics else [])]
    writer = rate.selectExpr(*columns).writeStream.foreachBatch(sink)
    with workers_outlive_their_task(spark):
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        until(Path(late.folder, "about to send").exists, query.exception)
        query.stop()
        sink.close()
        first(late.folder, "aborted")
        wait_for(Path(late.folder, "sent"))
    time.sleep(0.5)
    assert query.exception() is None
    assert frozen(pulsar, topic) == []


@pytest.mark.parametrize("rows", [1, 10])
def test_a_batch_that_the_driver_gives_up_at_once_holds_no_reader_up(
    spark: SparkSession, pulsar: Any, make_topic: Any, rows: int
) -> None:
    """The abort follows the first frame so soon that the topic does not remember it."""
    for _ in range(5):
        topic = make_topic("bad-row")
        sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
        name = sink._context.options.name
        with sink.batch(0, eos.Identity(name, "run", "offsets of batch 0")) as txn:
            txn.write(spark.sql("select 'elsewhere' as value, 'x' as key where false"))
        good = spark.range(rows).selectExpr("cast(id as string) value", "0 as partition")
        bad = spark.sql("select 'bad' as value, 7 as partition")
        batch = sink.batch(1, eos.Identity(name, "run", "offsets of batch 1"))
        txn = batch.__enter__()
        txn.write(good)
        txn.write(bad)
        with pytest.raises(eos.InvalidInput):
            batch.__exit__(None, None, None)
        assert frozen(pulsar, topic) == []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rounds", [8, pytest.param(500, marks=pytest.mark.soak)])
def test_a_batch_that_is_given_up_at_any_moment_holds_no_reader_up(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, rounds: int
) -> None:
    """No further batch follows. A frame that is still on its way when a round ends arrives during those that follow."""
    moments, ends = random.Random(29), Counter[tuple[str, str]]()
    topics: list[str] = []
    for place in range(rounds):
        one = Round.draw(make_topic("given-up", partitions=PARTITIONS), tmp_path / str(place), place, moments)
        topics.append(one.topic)
        ended = one.run(spark, pulsar.service_url)
        ends[one.kind, ended] += 1
        assert not ended.startswith("failed"), ended
        if place >= LATER:
            assert freed(pulsar, topics[place - LATER]), topics[place - LATER]
    print("how they ended:", dict(ends))
    assert [topic for topic in topics if not freed(pulsar, topic)] == []
    assert [frozen(pulsar, topic) for topic in topics] == [[]] * rounds
