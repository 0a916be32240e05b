"""A sink without Spark, on a real broker, and the commands that look at it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from eos.cli.app import typer_app
from eos.commit.attempt import attempt
from eos.commit.control_topic import control_topic
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.takeover import bound_coordinator
from eos.config import Cluster
from eos.delivery.row_writer import WriteReport
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from tests.simulation.job import Sends
from tests.waiting import until


class DriverDies(BaseException):
    """Nothing is cleaned up."""


class Sink:
    """A sink without Spark: its owner, its topic, and batches of one row."""

    def __init__(
        self, pulsar: Any, make_topic: Any, name: str | None = None, query: str = "query", run: str = "run"
    ) -> None:
        self.client = Client(Cluster(pulsar.service_url))
        self.topic = make_topic("rows")
        self.name = name or quiet_name(pulsar, self.client)
        self._query, self._run = query, run
        log = control_topic(self.name, self.topic)
        self.client.ensure_topic(log)
        self.owner = Owner(self.client, self.name, log)
        self.owner.take_over(query, run)

    def write(self, batch_id: int, promised: int = 1) -> TxnId:
        """Write a batch of one row. Args: promised: how many rows its MARKER names."""
        used: list[TxnId] = []
        job = Sends(lambda txn: self._rows(txn, batch_id, used, promised))
        attempt(self.owner, batch_id, self._identity(batch_id), job)
        return used[0]

    def die_in_the_middle(self, batch_id: int, topic: str | None = None) -> TxnId:
        """Write a row and no MARKER. Args: topic: where the row goes, if not to the sink's."""
        used: list[TxnId] = []

        def write(txn: TxnId) -> WriteReport:
            self._rows(txn, batch_id, used, topic=topic)
            raise DriverDies

        with pytest.raises(DriverDies):
            attempt(self.owner, batch_id, self._identity(batch_id), Sends(write))
        return used[0]

    def _rows(
        self, txn: TxnId, batch_id: int, used: list[TxnId], promised: int = 1, topic: str | None = None
    ) -> WriteReport:
        topic = topic or self.topic
        used.append(txn)
        self.client.coordinator(txn.coordinator).add_partitions(txn, [topic])
        with self.client.producer(topic) as producer:
            producer.send_record(f"row of batch {batch_id}".encode(), txn)
        return WriteReport({topic: promised}, {topic: promised})

    def _identity(self, batch_id: int) -> Identity:
        return Identity(self._query, self._run, f"offsets {batch_id}")


def quiet_name(pulsar: Any, client: Client) -> str:
    """A name whose coordinator has no open transaction, such as other tests may leave: each would delay a healing."""
    with Admin(pulsar.admin_url) as admin:
        busy = {one.txn.coordinator for one in admin.open_transactions()}
    while True:
        name = f"doctor-{uuid.uuid4().hex[:8]}"
        if bound_coordinator(name, client.coordinators()) not in busy:
            return name


def eos(pulsar: Any, *words: str, admin: bool = True) -> Result:
    urls = ["--service-url", pulsar.service_url, *(["--admin-url", pulsar.admin_url] if admin else [])]
    return CliRunner().invoke(typer_app, [*words, *urls])


def truncate(pulsar: Any, topic: str) -> None:
    """Delete all messages of a topic, as an administrator does."""
    path = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"
    httpx.put(f"{path}/unload", timeout=60).raise_for_status()  # the ledger that is written to is not truncated
    answers: list[httpx.Response] = []

    def truncated() -> bool:
        answers.append(httpx.delete(f"{path}/truncate", timeout=60))
        return answers[-1].is_success

    until(truncated, lambda: answers[-1].text)  # a busy broker answered 500, right after the topic was unloaded


@pytest.fixture
def sink(pulsar: Any, make_topic: Any) -> Iterator[Sink]:
    """A sink with a topic of its own, in public/default."""
    made = Sink(pulsar, make_topic)
    yield made
    made.client.close()
