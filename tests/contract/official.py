"""The official client as the independent reader: what a consumer that starts now gets to see."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pulsar

from tests.clients import official_client

_QUIET_MS = 1000
_PATIENCE_MS = 60_000


@contextmanager
def fresh_consumer(service_url: str, topic: str) -> Iterator[pulsar.Consumer]:
    with official_client(service_url) as client:
        yield client.subscribe(topic, uuid.uuid4().hex, initial_position=pulsar.InitialPosition.Earliest)


def read_until(service_url: str, topic: str, last: bytes) -> list[bytes]:
    """Return every message from the earliest to `last`, by a fresh subscription; fails when `last` never comes."""
    values: list[bytes] = []
    with fresh_consumer(service_url, topic) as consumer:
        while not values or values[-1] != last:
            try:
                values.append(consumer.receive(timeout_millis=_PATIENCE_MS).data())
            except pulsar.Timeout:
                raise AssertionError(f"{last!r} is not readable; before it came {values}") from None
    return values


def readable_now(service_url: str, topic: str) -> list[bytes]:
    """Return what a fresh reader gets: all that the broker says is there, and what comes before it is quiet."""
    values: list[bytes] = []
    with official_client(service_url) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        while True:
            promised = reader.has_message_available()
            try:
                values.append(reader.read_next(_PATIENCE_MS if promised else _QUIET_MS).data())
            except pulsar.Timeout:
                assert not promised, f"the broker says that there is more than {values}, and it does not come"
                return values
