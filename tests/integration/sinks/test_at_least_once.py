"""`guarantee="at-least-once"` on real brokers: one without transactions, and from one guarantee to the other."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eos
from eos.local import LocalPulsar
from tests.conftest import create_topic
from tests.crash.job import Job, prepare, run_here
from tests.crash.process import account_for
from tests.reading import just_values

ROWS = 30
PLAIN: dict[str, Any] = {"guarantee": "at-least-once"}


def identity(batch_id: int = 0) -> eos.Identity:
    return eos.Identity("query", "run", f"offsets of batch {batch_id}")


def test_a_broker_without_transactions_is_written_to_on_both_paths(
    spark: SparkSession, start_pulsar: Callable[..., LocalPulsar], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eos.sink")
    broker = start_pulsar(settings={"transactionCoordinatorEnabled": "false"})
    topic, other = (create_topic(broker.admin_url, stem, 2) for stem in ("plain", "other"))
    with pytest.raises(eos.InvalidInput, match="has no transaction coordinators"):
        eos.sink(broker.service_url, topic=topic, name="strict")
    finished: list[eos.FinishedBatch] = []
    by_path: dict[str, eos.Sink] = {}
    for path, limit in (("tasks", 0), ("driver", 1_000)):
        sink = eos.sink(
            broker.service_url, topic=topic, name=path, small_batch_rows=limit, metrics=finished.append, **PLAIN
        )
        sink.check(spark.range(3).selectExpr("cast(id as string) value"))
        for batch_id in range(2):  # the first one goes by tasks, whatever its size
            with sink.batch(batch_id, identity(batch_id)) as txn:
                txn.write(spark.range(50).selectExpr(f"concat('{path}-{batch_id}-', id) value"))
                txn.write(spark.range(7).selectExpr(f"concat('{path}-{batch_id}-', id) value"), other)
        by_path[path] = sink
    made = [(path, batch_id) for path in by_path for batch_id in range(2)]
    assert just_values(broker.service_url, topic, 200) == Counter(
        f"{p}-{b}-{row}" for p, b in made for row in range(50)
    )
    assert just_values(broker.service_url, other, 28) == Counter(f"{p}-{b}-{row}" for p, b in made for row in range(7))
    seen = by_path["driver"].metrics
    assert (seen.committed, seen.attempts, seen.rows, seen.rows_by_topic) == (2, 2, 114, {topic: 100, other: 14})
    assert seen.open_transaction_s is None
    assert "\n".join(caplog.messages).count("batch 1: wrote 57 rows, ") == 2
    by_path["rows"] = eos.sink(broker.service_url, name="rows", metrics=finished.append, **PLAIN)
    with pytest.raises(eos.TopicMissing, match="does not exist"), by_path["rows"].batch(0, identity()) as txn:
        txn.write(spark.range(1).selectExpr("'a' value", "'persistent://public/default/nowhere' topic"))
    for sink in by_path.values():
        sink.close()
    assert [(one.outcome, one.transaction) for one in finished] == [("committed", None)] * 4 + [("unknown", None)]


@pytest.fixture
def job(pulsar: Any, make_topic: Any, tmp_path: Path) -> Job:
    """Six micro-batches, to be written exactly once."""
    return prepare(pulsar.service_url, make_topic("guarantee", partitions=2), tmp_path, 6, ROWS)


def test_a_query_goes_from_one_guarantee_to_the_other_and_back(spark: SparkSession, job: Job) -> None:
    """Where Spark has noted the end of each batch, nothing is there twice."""
    plain = replace(job, options=PLAIN)
    run_here(spark, job, last=1)
    assert run_here(spark, plain, last=3).metrics.committed == 2
    assert run_here(spark, job).metrics.committed == 2
    result = account_for(job.service_url, job.topic, 6, ROWS)
    assert (result.lost, result.duplicated, result.found) == (0, 0, 6 * ROWS)


def test_a_batch_that_may_be_visible_is_not_written_exactly_once(spark: SparkSession, job: Job) -> None:
    """Its driver died before Spark noted it: only the same guarantee may take it, and what was there is there twice."""
    plain = replace(job, options=PLAIN)
    run_here(spark, job, last=0)
    run_here(spark, plain, unnoted=2)
    for _ in range(2):
        with pytest.raises(eos.InvalidInput, match=r"batch 2 was begun with guarantee=\"at-least-once\""):
            run_here(spark, job)
    assert account_for(job.service_url, job.topic, 3, ROWS).duplicated == 0, "a refused run has written something"
    run_here(spark, plain, last=3)
    run_here(spark, job)
    result = account_for(job.service_url, job.topic, 6, ROWS)
    assert (result.lost, result.duplicated, result.found) == (0, ROWS, 7 * ROWS)
