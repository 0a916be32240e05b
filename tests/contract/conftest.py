"""Clients and producers for the tests that ask a real broker what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest

from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.clients import ours as ours
from tests.clients import theirs as theirs
from tests.contract.raw import RawProducer, client


class Running(Protocol):
    """A broker, of the tests or of another process."""

    @property
    def service_url(self) -> str: ...

    @property
    def admin_url(self) -> str: ...


Produce = Callable[..., RawProducer]


@pytest.fixture
def make_client(pulsar: Running) -> Iterator[Callable[[], Client]]:
    """Make a client that knows nothing of the others."""
    with ExitStack() as made:
        yield lambda: made.enter_context(client(pulsar.service_url))


@pytest.fixture
def admin(pulsar: Running) -> Iterator[Admin]:
    with Admin(pulsar.admin_url) as opened:
        yield opened


@pytest.fixture
def produce(pulsar: Running) -> Iterator[Produce]:
    """Open a raw producer on a connection of its own: `produce(topic)`."""
    with ExitStack() as made:

        def open_one(topic: str, access: str = "shared", name: str | None = None) -> RawProducer:
            producer = RawProducer(pulsar.service_url, topic, access, name)
            made.callback(producer.connection.close)
            return producer

        yield open_one


@pytest.fixture
def quiet(ours: Client, admin: Admin) -> int:
    """A coordinator without open transactions, such as crash tests leave: they would delay every healing."""
    busy = {one.txn.coordinator for one in admin.open_transactions()}
    return next((index for index in range(ours.coordinators()) if index not in busy), 0)
