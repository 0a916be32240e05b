"""A topic that was terminated: what else the sink writes to goes on."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import eos
from eos.steps import Observer, Phase, Step, unobserved
from tests.reading import values_of

TTL_S = 60.0


def terminate(admin_url: str, topic: str) -> None:
    path = topic.replace("persistent://", "persistent/")
    httpx.post(f"{admin_url}/admin/v2/{path}/terminate", timeout=30).raise_for_status()


@pytest.mark.parametrize("small_batch_rows", [1_000, 0], ids=["driver path", "task path"])
def test_the_other_topics_are_written_as_soon_as_no_row_goes_to_the_terminated_one(
    spark: SparkSession, pulsar: Any, make_topic: Any, small_batch_rows: int
) -> None:
    alive, dead = make_topic("alive"), make_topic("dead")
    sink = eos.sink(pulsar.service_url, name=alive.rsplit("/")[-1], small_batch_rows=small_batch_rows)

    def write(batch_id: int, *topics: str) -> None:
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets of batch {batch_id}")) as txn:
            for topic in topics:
                txn.write(spark.sql(f"select 'batch {batch_id}' as value"), topic)

    write(0, alive, dead)
    terminate(pulsar.admin_url, dead)
    with pytest.raises(eos.InvalidInput, match="Topic was already terminated"):
        write(1, alive, dead)
    assert sink.metrics.attempts == 2
    write(1, alive)
    sink.close()
    assert values_of(pulsar.service_url, alive) == ["batch 0", "batch 1"]


@dataclass
class Terminates:
    """Terminates a topic when rows of a batch were sent to it."""

    admin_url: str
    topic: str
    done: bool = False

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if batch_id == 1 and (step, phase) == (Step.ALL_SENT, "before") and not self.done:
            self.done = True
            terminate(self.admin_url, self.topic)


@pytest.mark.soak
def test_one_that_is_terminated_in_the_middle_of_a_batch_holds_only_its_own_rows(
    spark: SparkSession, pulsar: Any, make_topic: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its transaction can't end, and the sink waits two minutes for that before each time that it goes on."""
    alive, dead, name = make_topic("alive"), make_topic("dead"), f"terminated-{uuid.uuid4().hex[:8]}"

    def sink(observer: Observer = unobserved) -> eos.Sink:
        return eos.sink(pulsar.service_url, name=name, observer=observer, transaction_timeout_s=TTL_S)

    def write(to: eos.Sink, run: str, batch_id: int, *topics: str) -> None:
        with to.batch(batch_id, eos.Identity("query", run, f"offsets of batch {batch_id}")) as txn:
            for topic in topics:
                txn.write(spark.sql(f"select 'batch {batch_id}' as value"), topic)

    first = sink(Terminates(pulsar.admin_url, dead))
    write(first, "run", 0, alive, dead)
    with pytest.raises(eos.InvalidInput, match="Topic was already terminated"):
        write(first, "run", 1, alive, dead)
    first.close()
    second = sink()
    write(second, "run-2", 1, alive)
    write(second, "run-2", 2, alive)
    second.close()
    assert sum("is not committed, and has not ended in time" in line for line in caplog.messages) == 1
    assert values_of(pulsar.service_url, alive) == ["batch 0", "batch 1", "batch 2"]
