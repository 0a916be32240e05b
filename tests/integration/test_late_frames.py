"""A task and the driver send into a transaction that was committed: the sink's batches stay whole.

tests/contract/test_late_send.py shows by hand what such a frame does to a batch whose producers could still send.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eos
from eos.errors import OutOfTurn
from eos.pulsar.net.producer import Producer
from eos.steps import Observer, Phase, Step
from tests.crash.moments import LateTask, Moment
from tests.reading import values_of

ROWS = 60


@dataclass(frozen=True)
class Call:
    """Calls a function of the driver at a moment."""

    moment: Moment
    action: Callable[[], None]

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if self.moment.is_at(step, phase, batch_id):
            self.action()


def write_three_batches(
    spark: SparkSession, pulsar: Any, topic: str, observer: Observer, small_batch_rows: int
) -> list[str]:
    """Write them, and return what a new reader finds."""
    name = topic.rsplit("/")[-1]
    sink = eos.sink(pulsar.service_url, topic=topic, name=name, observer=observer, small_batch_rows=small_batch_rows)
    for batch_id in range(3):
        start = batch_id * ROWS
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets of batch {batch_id}")) as txn:
            txn.write(spark.range(start, start + ROWS, numPartitions=2).selectExpr("cast(id as string) value"))
    return sorted(values_of(pulsar.service_url, topic), key=int)


def test_a_task_that_wakes_up_after_the_commit_is_refused_by_the_broker(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    zombie = LateTask(1, str(tmp_path), os.getpid())
    found = write_three_batches(spark, pulsar, make_topic("late-task"), zombie, small_batch_rows=0)
    assert (tmp_path / "pushed").exists()
    assert found == [str(row) for row in range(3 * ROWS)]


def test_the_driver_refuses_its_own_late_send(
    spark: SparkSession, pulsar: Any, make_topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Callable[[], None]] = []
    refused: list[str] = []
    send = Producer.send

    def send_and_keep(producer: Producer, *args: Any) -> None:
        sent.append(lambda: send(producer, *args))
        send(producer, *args)

    def send_again() -> None:
        with pytest.raises(OutOfTurn) as caught:
            sent[-1]()
        refused.append(str(caught.value))

    monkeypatch.setattr(Producer, "send", send_and_keep)
    late = Call(Moment(Step.END_ANSWERED, "after", 1), send_again)
    found = write_three_batches(spark, pulsar, make_topic("late-driver"), late, small_batch_rows=1_000)
    assert len(sent) == 2, "batches 1 and 2 went by the driver"
    assert len(refused) == 1
    assert found == [str(row) for row in range(3 * ROWS)]
