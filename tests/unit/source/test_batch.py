"""The names of the subscriptions by which a batch read keeps its ranges stored."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql.types import StructType

import eos.source.batch
from eos.doctor.leftovers import LEFT
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch import PulsarReader, retaining_name
from eos.source.brokers import PulsarBrokers
from eos.source.offsets import BEGINNING
from eos.source.options import parse_options
from eos.source.ranges import Range

READ = "0123456789abcdef" * 2


def task(attempt: int, **properties: str) -> TaskContext:
    made: TaskContext = object.__new__(TaskContext)
    made._taskAttemptId, made._localProperties = attempt, properties
    return made


def name_in(monkeypatch: pytest.MonkeyPatch, context: TaskContext) -> str:
    monkeypatch.setattr(TaskContext, "_taskContext", context)
    return retaining_name(READ)


@pytest.mark.parametrize(
    ("application", "name"),
    [
        ({"spark.app.id": "application_1700_0042"}, f"spark-batch-application_1700_0042-{READ}-7"),
        ({"spark.app.id": "a job/of mine"}, f"spark-batch-a-job-of-mine-{READ}-7"),
        ({}, f"spark-batch-{READ}-7"),
    ],
)
def test_a_name_tells_the_application_the_read_and_the_task(
    monkeypatch: pytest.MonkeyPatch, application: dict[str, str], name: str
) -> None:
    made = name_in(monkeypatch, task(7, **application))
    assert made == name
    assert LEFT.fullmatch(made), "eos doctor finds it"
    assert LEFT.fullmatch(f"role-{made}"), "and with a prefix"


def test_two_tries_of_a_task_never_share_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one that ends would delete it, while the other still reads."""
    of_one_job = {"spark.app.id": "app-1"}
    assert len({name_in(monkeypatch, task(attempt, **of_one_job)) for attempt in (7, 8)}) == 2


def test_the_ranges_of_a_read_share_its_id_and_two_reads_share_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = [Range(f"persistent://public/default/t-partition-{n}", BEGINNING, EntryId(3, 7)) for n in range(3)]
    monkeypatch.setattr(eos.source.batch, "batch_ranges", lambda *asked: ranges)
    monkeypatch.setattr(PulsarBrokers, "warn_of_policies", lambda *asked, **how: None)
    reader = PulsarReader(parse_options({"service.url": "pulsar://h:1", "topic": "t"}, "batch"), StructType())

    def planned() -> set[Any]:
        return {partition.read_id for partition in reader.partitions()}  # type: ignore[attr-defined]

    first, second = planned(), planned()
    assert (len(first), len(second), len(first | second)) == (1, 1, 2)
