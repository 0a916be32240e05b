"""Clients of the broker of a test: this library's, and the official one as an independent reader and writer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pulsar as official
import pytest

from eos.config import Cluster
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId
from tests.waiting import PATIENCE_S


@contextmanager
def official_client(service_url: str, **options: Any) -> Iterator[official.Client]:
    """Open a client that logs by Python's logging, and close it."""
    client = official.Client(service_url, logger=logging.getLogger("tests.official_client"), **options)
    try:
        yield client
    finally:
        client.close()


@pytest.fixture
def theirs(pulsar: Any) -> Iterator[official.Client]:
    """The official client."""
    with official_client(pulsar.service_url) as client:
        yield client


@pytest.fixture
def ours(pulsar: Any) -> Iterator[Client]:
    """A client that knows nothing of what other clients did."""
    with Client(Cluster(pulsar.service_url, request_timeout_s=PATIENCE_S)) as client:
        yield client


def transaction(client: Client, *topics: str, ttl_ms: int = 60_000, coordinator_index: int = 0) -> TxnId:
    """Begin one, with these topics in it."""
    coordinator = client.coordinator(coordinator_index)
    txn = coordinator.new_transaction(ttl_ms)
    if topics:
        coordinator.add_partitions(txn, topics)
    return txn


def end(client: Client, txn: TxnId, *, commit: bool) -> None:
    """End it by the coordinator that has begun it."""
    client.coordinator(txn.coordinator).end(txn, commit)
