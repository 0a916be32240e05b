"""The official client as the independent reader: what a consumer that starts now gets to see."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pulsar

_QUIET_MS = 1500


@contextmanager
def fresh_consumer(service_url: str, topic: str) -> Iterator[pulsar.Consumer]:
    client = pulsar.Client(service_url, logger=logging.getLogger("tests.official_client"))
    try:
        yield client.subscribe(topic, uuid.uuid4().hex, initial_position=pulsar.InitialPosition.Earliest)
    finally:
        client.close()


def read_until(service_url: str, topic: str, last: bytes) -> list[bytes]:
    """Return every message from the earliest to `last`, by a fresh subscription; fails when `last` never comes."""
    values: list[bytes] = []
    with fresh_consumer(service_url, topic) as consumer:
        while not values or values[-1] != last:
            try:
                values.append(consumer.receive(timeout_millis=20_000).data())
            except pulsar.Timeout:
                raise AssertionError(f"{last!r} is not readable; before it came {values}") from None
    return values


def readable_now(service_url: str, topic: str) -> list[bytes]:
    """Return what a fresh subscription gets before nothing comes any more."""
    values: list[bytes] = []
    with fresh_consumer(service_url, topic) as consumer:
        while True:
            try:
                values.append(consumer.receive(timeout_millis=_QUIET_MS).data())
            except pulsar.Timeout:
                return values
