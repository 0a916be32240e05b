"""Two regions that replicate one namespace to each other, each with a sink of the same name on the same topic.

Each region's broker is a cluster of its own. The actions of one sink must not touch the other: not its log, not its
owner, not its transactions. Each region has the rows of both in the end, each once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from pyspark.sql import SparkSession

from eos.commit.control_log import OwnerRecord, Record, decode
from eos.commit.control_topic import control_topic
from eos.config import Cluster
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.producer import Producer
from eos.pulsar.wire.txn import TxnId
from eos.steps import Phase, Step
from tests.clients import transaction
from tests.crash.job import Job, prepare, run_here
from tests.crash.process import account_for, run_into_crash, run_to_end
from tests.integration.sparkless import Sink
from tests.integration.sparkless import eos as command
from tests.regions import NAMESPACE, Regions
from tests.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_800)]

FILES, ROWS, PARTITIONS = 12, 50, 2
BY_DRIVER, BY_TASKS = 1_000, 0
MOMENTS: list[tuple[Step, Phase]] = [
    (Step.INTENT, "after"),
    (Step.ALL_SENT, "after"),
    (Step.MARKER, "after"),
    (Step.END_SENT, "after"),
]


def open_transactions(cluster: LocalPulsar) -> set[TxnId]:
    with Admin(cluster.admin_url) as admin:
        return {one.txn for one in admin.open_transactions()}


def records(cluster: LocalPulsar, log: str) -> list[tuple[Record, str | None]]:
    """Return all readable records of a control log, each with the cluster that a replicator brought it from."""
    with Client(Cluster(cluster.service_url)) as client:
        reader = client.reader(log)
        last = reader.last_message_id()
        read: list[tuple[Record, str | None]] = []
        while message := reader.read(5):
            read.append((decode(message.data or b""), message.replicated_from))
            if message.message_id >= last:
                break
        return read


def test_drivers_that_die_in_one_region_leave_the_sink_of_the_other_alone(
    regions: Regions, spark: SparkSession, tmp_path: Path
) -> None:
    """Each region's driver dies at each moment; meanwhile the other takes its own sink over and writes a batch."""
    topic = regions.create_topic("rows", PARTITIONS)
    jobs = {
        name: prepare(here.service_url, topic, tmp_path / name, 2 * FILES, ROWS)
        for name, here in regions.named().items()
    }
    for number in range(FILES):  # each region has half of the rows
        (jobs["west"].input / f"{number:04}.csv").unlink()
        (jobs["east"].input / f"{FILES + number:04}.csv").unlink()
    done = {"east": -1, "west": -1}
    for turn, (step, phase) in enumerate([*MOMENTS, *MOMENTS]):
        dies, lives = ("east", "west") if turn % 2 == turn // len(MOMENTS) else ("west", "east")
        small = (BY_DRIVER, BY_TASKS)[turn // 2 % 2]
        run_into_crash(replace(jobs[dies], small_batch_rows=small, crash=(step, phase), crash_in=2))
        left = open_transactions(regions.named()[dies])
        done[lives] += 1
        run_here(spark, jobs[lives], last=done[lives])
        if step is not Step.END_SENT:  # else it may end by itself
            assert left, "the dead driver has left no transaction open"
            assert left <= open_transactions(regions.named()[dies]), f"{lives} has ended a transaction of {dies}"
        done[dies] += 1

    for job in jobs.values():
        run_to_end(job)
    regions.wait_until_replicated(topic, PARTITIONS)
    log = control_topic(jobs["east"].name, topic)
    for name, here in regions.named().items():
        assert account_for(here.service_url, topic, 2 * FILES, ROWS).is_exact()
        told = records(here, log)
        assert {came_from for _, came_from in told} == {None}
        assert {one.cluster for one, _ in told if isinstance(one, OwnerRecord)} == {name}
        ids = {one.query_id for one, _ in told}
        assert len(ids) == 1
        shows(here, jobs[name], ids.pop())


def shows(here: LocalPulsar, job: Job, query_id: str) -> None:
    """See that the commands tell of this region's sink alone."""
    for words, shown in {
        ("list",): query_id,
        ("show", job.name): "marker",
        ("verify", job.name): f"{FILES} committed batches, {FILES * ROWS} rows, 1 topic: as promised",
    }.items():
        told = command(here, "sink", *words, "--namespace", NAMESPACE)
        assert told.exit_code == 0, told.output
        assert shown in told.output


@contextmanager
def unmarked() -> Iterator[None]:
    """Send control records as a version of the library did that did not mark them as local."""
    send = Producer.send_record

    def plain(producer: Producer, *words: Any, local: bool = False, **named: Any) -> Any:
        return send(producer, *words, **named)

    with patch.object(Producer, "send_record", plain):
        yield


def test_a_takeover_passes_over_the_records_that_a_replicator_brought(regions: Regions) -> None:
    """The other region's unfinished INTENT names a transaction that here somebody else has open, by the same id."""
    topic = regions.create_topic("unmarked")
    name = "both"

    def sink(here: LocalPulsar, query: str) -> Sink:
        return Sink(here, lambda _: topic, name, query)

    west = sink(regions.west, "west")
    west.write(0)
    west.client.close()  # while it owns its log, the broker lets no replicator in
    with unmarked():
        east = sink(regions.east, "east")
        for batch in range(40):
            east.write(batch)
        begun = east.die_in_the_middle(40)
    log = control_topic(name, topic)
    until(lambda: from_elsewhere(regions.west, log) >= 80, "the records of the east did not come", pause_s=0.5)

    with Client(Cluster(regions.west.service_url)) as client:
        while (other := transaction(client, topic, coordinator_index=begun.most)) != begun:
            assert other.least < begun.least
            client.coordinator(other.most).end(other, commit=False)
        west = sink(regions.west, "west")
        west.write(1)
        assert other in open_transactions(regions.west)
        client.coordinator(other.most).end(other, commit=False)
    told = command(regions.west, "sink", "verify", name, "--namespace", NAMESPACE)
    assert "2 committed batches, 2 rows" in told.output
    west.client.close()
    east.client.close()


def from_elsewhere(here: LocalPulsar, log: str) -> int:
    return sum(came_from is not None for _, came_from in records(here, log))


def test_a_log_that_is_replicated_can_be_reset_once_it_stays_in_its_cluster(regions: Regions) -> None:
    topic = regions.create_topic("reset")
    sink = Sink(regions.east, lambda _: topic, "again")
    sink.write(0)
    sink.client.close()
    words = ("sink", "reset", "again", "--yes", "--namespace", NAMESPACE)
    refused = command(regions.east, *words)
    assert refused.exit_code != 0
    log = control_topic("again", topic)
    assert "set-replication-clusters --clusters CLUSTER TOPIC" in str(refused.exception)
    for name, here in regions.named().items():
        where = f"{here.admin_url}/admin/v2/{log.replace('://', '/')}/replication"
        httpx.post(where, json=[name], timeout=30).raise_for_status()  # what the command asks for
    until(lambda: command(regions.east, *words).exit_code == 0, "the log can't be deleted", pause_s=1)
