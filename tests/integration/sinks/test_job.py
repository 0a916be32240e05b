"""`eos.write` on a real broker: once for each id, by a reader that knows nothing of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.steps import Phase, Step
from tests.reading import values_of

ROWS = [str(row) for row in range(50)]


def job(pulsar: Any, df: DataFrame, topic: str, **options: Any) -> eos.JobResult:
    return eos.write(df, pulsar.service_url, **{"job_id": topic.rpartition("/")[2], "topic": topic, **options})


def rows(spark: SparkSession, *columns: str) -> DataFrame:
    return spark.range(50, numPartitions=3).selectExpr(*(columns or ("cast(id as string) key", "string(id) value")))


def test_a_job_is_written_once(spark: SparkSession, pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("job", partitions=2)
    first = job(pulsar, rows(spark), topic, admin_url=pulsar.admin_url)
    assert (first.wrote, first.rows, first.rows_by_topic) == (True, 50, {topic: 50})
    second = job(pulsar, rows(spark), topic)
    assert second == eos.JobResult(
        first.job_id, False, first.transaction, 50, first.bytes, first.rows_by_topic, first.bytes_by_topic
    )
    with pytest.raises(eos.IdentityMismatch, match="columns was"):
        job(pulsar, rows(spark, "cast(id as string) value"), topic)
    with pytest.raises(eos.IdentityMismatch, match="topic was"):
        job(pulsar, rows(spark), make_topic("job"), job_id=first.job_id)
    assert sorted(values_of(pulsar.service_url, topic)) == sorted(ROWS)


def test_a_job_and_a_sink_do_not_share_a_name(spark: SparkSession, pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("job")
    name = topic.rpartition("/")[2]
    sink = eos.sink(pulsar.service_url, topic=topic, name=name)
    with sink.batch(0, eos.Identity("query", "run", "offsets")) as txn:
        txn.write(rows(spark))
    with pytest.raises(eos.IdentityMismatch, match="is the name of a sink"):
        job(pulsar, rows(spark), topic)
    sink.close()
    assert sorted(values_of(pulsar.service_url, topic)) == sorted(ROWS)


@dataclass
class Rival:
    """Writes the job from another thread, as another process would, when the first has sent all its rows."""

    call: Any
    result: eos.JobResult | None = None

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if (step, phase) == (Step.MARKER, "before") and self.result is None:
            thread = threading.Thread(target=self._write)
            thread.start()
            thread.join()

    def _write(self) -> None:
        self.result = self.call()

    def __reduce__(self) -> Any:
        return (_Silent, ())


class _Silent:
    """The rows that tasks get in the rival's place."""

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        pass


def test_of_two_calls_at_once_one_is_fenced(spark: SparkSession, pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("job", partitions=2)
    rival = Rival(lambda: job(pulsar, rows(spark), topic, request_timeout_s=29.0))  # so with connections of its own
    with pytest.raises(eos.Fenced):
        job(pulsar, rows(spark), topic, observer=rival)
    assert rival.result is not None
    assert rival.result.wrote
    assert not job(pulsar, rows(spark), topic).wrote
    assert sorted(values_of(pulsar.service_url, topic)) == sorted(ROWS)


def test_a_small_job_may_be_empty(spark: SparkSession, pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("job")
    assert [(one.wrote, one.rows) for one in (job(pulsar, rows(spark).limit(0), topic) for _ in range(2))] == [
        (True, 0),
        (False, 0),
    ]
