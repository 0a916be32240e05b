"""User code that would lose rows without a word, and the leftovers of a run at the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.commit.attempt import attempt
from eos.commit.control_topic import control_topic
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.config import Cluster
from eos.delivery.row_writer import WriteReport
from eos.pulsar.net.client import Client, Reader
from eos.pulsar.protocol.messages import Message
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from tests.crash.job import Job, prepare, start
from tests.reading import values_of
from tests.simulation.job import Sends
from tests.waiting import until

ROWS = 5


@pytest.fixture
def admin(pulsar: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2", timeout=30) as client:
        yield client


@pytest.fixture
def job(pulsar: Any, make_topic: Any, tmp_path: Path) -> Job:
    return prepare(pulsar.service_url, make_topic("misuse"), tmp_path, 3, ROWS)


def connected(admin: httpx.Client, job: Job) -> tuple[int, int, int]:
    """Producers of the topic and of the control topic, and consumers on the latter's hold subscription."""

    def stats(topic: str) -> dict[str, Any]:
        return dict(admin.get(f"/{topic.replace('://', '/')}/stats").raise_for_status().json())

    log = stats(control_topic(job.name, job.topic))
    held = log["subscriptions"]["__eos-hold"]["consumers"]
    return len(stats(job.topic)["publishers"]), len(log["publishers"]), len(held)


def run(
    spark: SparkSession, job: Job, write: Callable[[eos.Sink, DataFrame, int], None], ends_with: str = "never"
) -> tuple[eos.Sink, list[str]]:
    """Run the query to its end; return the sink, which is not closed, and what its calls raised.

    No other error ends the query than one of them, or one that says this.
    """
    sink = eos.sink(job.service_url, topic=job.topic, name=job.name)
    raised: list[str] = []

    def batch(df: DataFrame, batch_id: int) -> None:
        try:
            write(sink, df, batch_id)
        except eos.EosError as error:
            raised.append(f"{type(error).__name__}: {error}")
            raise

    query = start(spark, job, batch)
    try:
        query.awaitTermination()
    except Exception as error:
        if not raised and ends_with not in str(error):
            raise
    return sink, raised


def test_two_calls_for_one_batch_are_told_to_become_one(spark: SparkSession, job: Job) -> None:
    def twice(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
        sink(df.limit(1), batch_id)
        sink(df.limit(2), batch_id)

    sink, raised = run(spark, job, twice)
    assert len(raised) == 1
    assert "InvalidInput: This run of the query has written or skipped batch 0 already" in raised[0]
    assert "Put both writes into one `with sink.batch(batch_id) as txn:`" in raised[0]
    assert (sink.metrics.committed, sink.metrics.skipped) == (1, 0)


def test_a_failure_that_is_swallowed_makes_the_next_batch_fail(spark: SparkSession, job: Job) -> None:
    def careless(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
        try:
            sink(df.selectExpr("value", "value kee") if batch_id == 1 else df, batch_id)
        except eos.InvalidInput:
            if batch_id != 1:
                raise

    sink, raised = run(spark, job, careless, "Batch 1 failed: Column 'kee' means nothing to the sink")
    # On a busy machine the sink has ended the query before Spark comes to batch 2.
    assert len(raised) <= 1
    assert all("InvalidInput: Batch 2 is not written: batch 1 failed in run " in words for words in raised)
    assert sink.metrics.committed == 1
    assert len(values_of(job.service_url, job.topic)) == ROWS


def test_a_query_that_has_ended_leaves_nothing_open(spark: SparkSession, job: Job, admin: httpx.Client) -> None:
    """The sink is there still, and not closed by the caller: it would be used again by the next start."""
    seen: list[tuple[int, int, int]] = []

    def write(sink: eos.Sink, df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)
        seen.append(connected(admin, job))

    sink, raised = run(spark, job, write)
    assert raised == []
    assert seen[1:] == [(1, 1, 1)] * 2
    until(lambda: connected(admin, job) == (0, 0, 0), lambda: connected(admin, job))
    assert sink.metrics.committed == 3


def test_a_start_that_is_refused_leaves_nothing_open(spark: SparkSession, job: Job, admin: httpx.Client) -> None:
    _, raised = run(spark, job, lambda sink, df, batch_id: sink(df, batch_id))
    assert raised == []
    until(lambda: connected(admin, job) == (0, 0, 0), lambda: connected(admin, job))
    for number in range(3):
        refused = eos.sink(job.service_url, topic=job.topic, name=job.name)
        with (
            pytest.raises(eos.IdentityMismatch),
            refused.batch(0, Identity("another query", f"run {number}", "offsets")) as txn,
        ):
            txn.write(spark.sql("select 'x' value"))
        until(lambda: connected(admin, job) == (0, 0, 0), lambda: connected(admin, job))


class CountingClient(Client):
    """Counts the records that its readers read."""

    count = 0

    def reader(self, topic: str, *, permits: int = 1000, after: MessageId = EARLIEST, stored: bool = False) -> Reader:
        reader = super().reader(topic, permits=permits, after=after, stored=stored)
        read = reader.read

        def counted(timeout_s: float) -> Message | None:
            message = read(timeout_s)
            self.count += message is not None
            return message

        reader.read = counted  # type: ignore[method-assign]
        return reader


def test_a_takeover_reads_what_is_retained_and_not_the_whole_log(
    pulsar: Any, make_topic: Any, admin: httpx.Client
) -> None:
    """Also where the last record is the first of its ledger, as it is once the topic was unloaded."""
    name = make_topic("counts").rsplit("/")[-1]
    topic = control_topic(name, name)
    settings = OwnerSettings(markers_retained=3)

    def take_over(run: str) -> tuple[Owner, int]:
        client = CountingClient(Cluster(pulsar.service_url))
        owner = Owner(client, name, topic, settings)
        owner.take_over("query", run)
        return owner, client.count

    with Client(Cluster(pulsar.service_url)) as client:
        client.ensure_topic(topic)
    owner, _ = take_over("run")
    for batch_id in range(25):
        attempt(owner, batch_id, Identity("query", "run", f"offsets {batch_id}"), Sends(lambda txn: WriteReport()))
    owner.close()
    for number in range(3):
        owner, count = take_over(f"run {number}")
        assert list(owner.view.markers) == [22, 23, 24]
        assert count <= 1 + 2 * 4 + number + 1, "the last record, two of each retained batch, and the OWNERs behind"
        owner.close()
        admin.put(f"/{topic.replace('://', '/')}/unload").raise_for_status()
