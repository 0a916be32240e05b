"""A driver that stands still in the middle of a batch, as in a long pause of its machine, while a second takes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.crash.job import prepare, run_here
from tests.crash.process import Driver, account_for

FILES, ROWS = 4, 300


@pytest.mark.parametrize(
    ("small_batch_rows", "moment"),
    [(1_000, ("end-sent", "before")), (0, ("first-send", "after"))],
    ids=["driver path, before its commit", "task path, while a task sends"],
)
def test_a_driver_that_wakes_up_behind_its_successor_is_fenced(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, small_batch_rows: int, moment: tuple[str, str]
) -> None:
    topic = make_topic("paused", partitions=2)
    job = prepare(
        pulsar.service_url,
        topic,
        tmp_path,
        FILES,
        ROWS,
        small_batch_rows=small_batch_rows,
        fault=("gate", *moment, 1),
        options={"request_timeout_s": 8.0},  # a fenced producer's send may get no answer at all
    )
    with Driver(job) as first:
        job.gate.wait()
        first.pause()
        job.gate.open()

        second = run_here(spark, job)
        assert second.metrics.committed == FILES - 1
        assert account_for(pulsar.service_url, topic, FILES, ROWS).is_exact()

        first.resume()
        assert first.wait() != 0
        assert "Fenced" in first.tail()
    result = account_for(pulsar.service_url, topic, FILES, ROWS)
    assert result.is_exact(), result
    run_here(spark, job)
    assert account_for(pulsar.service_url, topic, FILES, ROWS).is_exact()
