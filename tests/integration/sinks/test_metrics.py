"""The reports of a sink to its observers about real batches, beside those of Spark."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos
from eos.metrics.progress import Progress, ProgressListener
from eos.metrics.prometheus import PrometheusMetrics
from tests.reading import messages_of
from tests.waiting import until, until_batch

AGE = "eos_sink_open_transaction_age_seconds"
DRIVER_STEPS = {"open", "intent", "add-control", "marker", "end-sent", "end-answered", "return"}
TAKEOVER_STEPS = {"takeover", "owner-record"}


def short(topic: str) -> str:
    return topic.rpartition("/")[2]


def write(sink: eos.Sink, batch_id: int, *writes: tuple[DataFrame, str], run: str = "run") -> None:
    with sink.batch(batch_id, eos.Identity("query", run, f"offsets of {batch_id}")) as txn:
        for df, topic in writes:
            txn.write(df, topic)


@pytest.mark.parametrize("small_batch_rows", [0, 1_000], ids=["tasks", "driver"])
def test_an_observer_is_told_what_readers_find(
    spark: SparkSession, pulsar: Any, make_topic: Any, small_batch_rows: int
) -> None:
    one, other = make_topic("told", 2), make_topic("told")
    told: list[eos.FinishedBatch] = []

    def sink() -> eos.Sink:
        options: dict[str, Any] = {"small_batch_rows": small_batch_rows, "attempts": 1, "metrics": told.append}
        return eos.sink(pulsar.service_url, name=short(one), **options)

    rows = spark.range(40, numPartitions=2).selectExpr("string(id) value", "string(id % 7) key")
    first = sink()
    write(first, 0, (rows.limit(0), one))
    write(first, 1, (rows, one), (rows.limit(3), other))
    with pytest.raises(eos.InvalidInput, match="partition 9"):
        write(first, 2, (rows.selectExpr("*", "9 as partition"), one))
    first.close()
    write(sink(), 1, (rows, one), (rows.limit(3), other), run="the next run")

    assert [(batch.batch_id, batch.outcome, batch.error, batch.attempts) for batch in told] == [
        (0, "committed", None, 1),
        (1, "committed", None, 1),
        (2, "failed", "InvalidInput", 1),
        (1, "replayed", None, 0),
    ]
    empty, written, failed, replayed = told
    found = {topic: messages_of(pulsar.service_url, topic) for topic in (one, other)}
    assert written.rows == {topic: len(messages) for topic, messages in found.items()} == {one: 40, other: 3}
    assert written.bytes == {topic: sum(map(size, messages)) for topic, messages in found.items()}
    entries = {topic: {place(m) for m in messages} for topic, messages in found.items()}
    assert written.frames == {topic: len(places) for topic, places in entries.items()}, "an entry is a frame"
    assert written.transaction == replayed.transaction != failed.transaction is None
    assert all((none.rows, none.bytes, none.frames) == ({}, {}, {}) for none in (empty, failed, replayed))
    assert set(written.step_s) >= DRIVER_STEPS
    assert not TAKEOVER_STEPS & set(written.step_s), "the sink was taken over in the batch before"
    assert set(empty.step_s) >= TAKEOVER_STEPS
    assert 0 < written.delivery_s < written.duration_s
    assert {batch.run_id for batch in told} == {"run", "the next run"}


def size(message: Any) -> int:
    return len(message.data()) + len(message.partition_key())


def place(message: Any) -> tuple[str, int, int]:
    at = message.message_id()
    return message.topic_name(), at.ledger_id(), at.entry_id()


@contextlib.contextmanager
def listening(spark: SparkSession, listener: ProgressListener) -> Iterator[None]:
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)


def test_sparks_progress_is_joined_with_what_the_sink_wrote(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic, registry = make_topic("joined", 2), CollectorRegistry()
    seen: list[Progress] = []
    ages: list[float | None] = []
    listener = eos.listener(seen.append)

    def raising(batch: eos.FinishedBatch) -> None:
        ages.append(registry.get_sample_value(AGE, {"sink": short(topic)}))
        raise OSError("no collector")

    prometheus = PrometheusMetrics(registry)
    sink = eos.sink(pulsar.service_url, topic=topic, name=short(topic), metrics=[prometheus, listener, raising])
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    rows = rate.observe("input", F.count(F.lit(1)).alias("rows")).selectExpr("string(value) value")

    def write(df: DataFrame, batch_id: int) -> None:
        sink(df.observe("within", F.count(F.lit(1)).alias("rows")), batch_id)

    with caplog.at_level(logging.WARNING, logger="eos.sink"), listening(spark, listener):
        writer = rows.writeStream.queryName("joined").foreachBatch(write).trigger(processingTime="100 milliseconds")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        until_batch(query, 1)
        query.stop()
        until(lambda: len(seen) > 1, "Spark told the listener of no batch")

    for number, progress in enumerate(seen[:2]):
        (batch,) = progress.written
        assert (batch.batch_id, progress.spark.batchId) == (number, number)
        assert (batch.query_id, batch.run_id) == (str(query.id), str(query.runId))
        assert (batch.outcome, batch.rows, progress.spark.numInputRows) == ("committed", {topic: 20}, 20)
        observed = {name: row.rows for name, row in progress.spark.observedMetrics.items()}
        assert observed == {"input": 20}, (
            "Spark tells of what is observed before foreachBatch, and of nothing within it"
        )
        assert progress.spark.sink.numOutputRows == -1, "and asks the sink for no figures"
        assert f"batch {number}: 20 rows in, " in progress.line()
        assert f"sink {short(topic)} committed 20 rows in " in progress.line()
    committed = {"sink": short(topic), "outcome": "committed"}
    count = registry.get_sample_value("eos_sink_batches_total", committed)
    assert count == sink.metrics.committed >= 2
    assert set(ages) == {0.0}, "no transaction is open when an observer is told"
    assert "\n".join(caplog.messages).count("raised OSError. The batch is not affected") == 1
    assert len(messages_of(pulsar.service_url, topic)) == sink.metrics.rows
