"""What several unit tests share: a scripted broker; a Spark session, for those of columns and of the driver path."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakValueDictionary

import pytest

from eos.pulsar.net.client import Client
from tests.spark_session import spark as spark
from tests.unit.pulsar.net.fake_broker import FakeBroker


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBroker]:
    """A broker, and no shared client of an earlier one that had the same port: it would remember its transactions."""
    monkeypatch.setattr(Client, "_shared", {})
    monkeypatch.setattr(Client, "_left", WeakValueDictionary())
    with FakeBroker() as fake:
        yield fake
        for client in Client._shared.values():
            client.close()


@pytest.fixture
def client(broker: FakeBroker) -> Iterator[Client]:
    """A client of that broker."""
    with broker.client() as opened:
        yield opened
