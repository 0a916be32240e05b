"""A control log and a checkpoint's registration that the version before wrote: this one takes over, and goes on.

The kept query committed batches 0 to 2, and its driver died before Spark knew of batch 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from eos.commit.attempt import attempt
from eos.commit.decision import Action, Identity
from eos.commit.owner import Owner
from eos.commit.registration import Registration
from eos.commit.retry import OwnerSettings
from eos.config import Cluster
from eos.delivery.row_writer import WriteReport
from eos.errors import DamagedLog, IdentityMismatch
from eos.pulsar.net.client import Client
from tests.simulation.job import Sends
from tests.vectors import kept

CHECKPOINT = kept.checkpoint()
REGISTERED = Registration.parse(CHECKPOINT["eos-sink.json"].decode())
QUERY = json.loads(CHECKPOINT["metadata"])["id"]


def identity(batch: int, offsets: str | None = None) -> Identity:
    return Identity(QUERY, "a new run", CHECKPOINT[f"offsets/{batch}"].decode() if offsets is None else offsets)


@pytest.fixture
def client(pulsar: Any) -> Iterator[Client]:
    """A cluster whose control topic is empty: its name is in the kept records, so it can't be the test's own."""
    url = f"{pulsar.admin_url}/admin/v2/{REGISTERED.control_topic.replace('://', '/')}"
    httpx.delete(url, params={"force": "true"}, timeout=60)
    httpx.put(url, timeout=60).raise_for_status()
    with Client(Cluster(pulsar.service_url)) as client:
        yield client


@pytest.fixture
def owner(client: Client) -> Iterator[Owner]:
    settings = OwnerSettings(read_timeout_s=1, patience_s=30)
    owner = Owner(client, REGISTERED.name, REGISTERED.control_topic, settings)
    yield owner
    owner.close()


def put_back(client: Client) -> None:
    with client.producer(REGISTERED.control_topic) as producer:
        for record in kept.messages("control"):
            producer.send_record(record.payload, None)


def test_the_log_is_taken_over_and_goes_on(client: Client, owner: Owner) -> None:
    put_back(client)
    owner.take_over(QUERY, "a new run", REGISTERED)
    assert list(owner.view.markers) == [0, 1, 2]
    assert owner.registration.last_number > REGISTERED.last_number
    assert owner.decide(2, identity(2)) is Action.SKIP
    with pytest.raises(IdentityMismatch):
        owner.decide(2, identity(2, "another input"))
    assert attempt(owner, 3, identity(3, "offsets 3"), Sends(lambda txn: WriteReport())) is Action.WRITE
    assert list(owner.log.read().markers) == [0, 1, 2, 3]


def test_the_registration_tells_that_the_log_is_gone(owner: Owner) -> None:
    with pytest.raises(DamagedLog, match=r"is empty, and this query has seen its record 7"):
        owner.take_over(QUERY, "a new run", REGISTERED)


def test_another_query_is_refused(client: Client, owner: Owner) -> None:
    put_back(client)
    with pytest.raises(IdentityMismatch):
        owner.take_over("another query", "a new run", REGISTERED)
