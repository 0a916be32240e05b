"""A query that is stopped at any moment ends as one that was stopped: without an error, and without a lost row."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import eos
from eos.spark.query_stop import end_after_batch
from tests.child_process import ChildProcess, python
from tests.crash.stopping import Stopping
from tests.reading import values_of
from tests.spark_session import quick_start
from tests.waiting import until

SPARKS_OWN = ("TaskContextImpl: Error in TaskCompletionListener", "[INTERNAL_ERROR_STORAGE] Block broadcast")
"""A task that is killed on its way may find that its broadcast is gone already: a race within Spark 4.3."""


@pytest.mark.parametrize("rounds", [8, pytest.param(40, marks=pytest.mark.soak)])
def test_a_stop_at_any_moment_is_no_error(pulsar: Any, make_topic: Any, tmp_path: Path, rounds: int) -> None:
    topics = [make_topic("stop", partitions=2) for _ in range(rounds // 2 + 1)]
    stopping = Stopping(pulsar.service_url, topics, str(tmp_path), rounds)
    ran = ChildProcess(python("tests.crash.stopping", stopping), tmp_path / "driver.log", quick_start())
    ran.finish()
    seen = [json.loads(line) for line in ran.output.splitlines() if line.startswith("{")]
    assert [one["failed"] for one in seen] == [None] * rounds
    words = ("StackOverflow", "ERROR", "Traceback")
    lines = [line for line in ran.logged.splitlines() if not any(own in line for own in SPARKS_OWN)]
    errors = [line for line in lines if any(word in line for word in words)]
    assert errors == [], "\n".join(errors[:20])
    for topic in topics:
        values = sorted(int(value) for value in values_of(pulsar.service_url, topic))
        assert values == list(range(len(values))), f"{topic}: rows are missing or doubled"
    print("seconds of each stop:", sorted(round(one["took_s"], 2) for one in seen))


def test_a_query_without_a_checkpoint_is_refused_at_its_first_batch(
    spark: SparkSession, pulsar: Any, make_topic: Any
) -> None:
    topic = make_topic("temporary")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    rate = spark.readStream.format("rate").load().selectExpr("cast(value as string) value")
    with pytest.raises(StreamingQueryException, match="The query has no checkpoint of its own"):
        rate.writeStream.foreachBatch(sink).start().awaitTermination()
    assert sink.metrics.attempts == 0


@pytest.mark.parametrize("small_batch_rows", [0, 1_000])
def test_a_stop_while_a_query_is_to_end_after_its_batch_cuts_the_batch_short(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, small_batch_rows: int
) -> None:
    topic = make_topic("stop-later")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1], small_batch_rows=small_batch_rows)
    began, go_on, ended = (tmp_path / name for name in ("began", "go-on", "ended"))

    @F.udf("string")
    def slowly(value: int) -> str:
        began.touch()
        for _ in range(1_000):
            if go_on.exists():
                break
            time.sleep(0.2)
        ended.touch()
        return str(value)

    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writer = rate.select(slowly("value").alias("value")).writeStream.foreachBatch(sink)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    until(began.exists, query.exception)
    assert not end_after_batch(query, 0.2)
    query.stop()
    cut_short = not ended.exists()
    go_on.touch()
    failed, attempts = query.exception(), sink.metrics.attempts
    sink.close()
    assert failed is None, failed
    assert attempts == 1, "a batch that was stopped is not tried again"
    assert cut_short, "it waited for the batch"
    assert values_of(pulsar.service_url, topic) == []
    assert end_after_batch(query, 0)
