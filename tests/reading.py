"""Read a topic to its very end with the official client, after later transactions have ended on it."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pulsar
import pulsar.schema
import pytest

from statestore.drills.judge import oracle
from statestore.drills.later_transactions import end_later_transactions


def messages_of(service_url: str, topic: str) -> list[pulsar.Message]:
    """Return all messages of a topic, by a fresh subscription.

    Raises Unread when a partition can't be read to its end.
    """
    end_later_transactions(service_url, topic)
    return list(oracle.messages_of(service_url, topic))


def values_of(service_url: str, topic: str) -> list[str]:
    """Return the payload of each message as text, copies included."""
    return [message.data().decode() for message in messages_of(service_url, topic)]


def received(client: pulsar.Client, topic: str, schema: Any, count: int, **options: Any) -> list[Any]:
    """Return what a fresh subscription gets, which is so many messages and not one more.

    Args: the client; the topic; the schema of the client; how many; options of `Client.subscribe`. Ends no transaction.
    """
    start = pulsar.InitialPosition.Earliest
    consumer = client.subscribe(topic, uuid.uuid4().hex, schema=schema, initial_position=start, **options)
    try:
        messages = [consumer.receive(60_000) for _ in range(count)]
        with pytest.raises(pulsar.Timeout):
            consumer.receive(500)
    finally:
        consumer.close()
    return messages


def just_values(service_url: str, topic: str, count: int) -> Counter[str]:
    """Return the payloads of so many messages as text, and see that there are no more."""
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        return Counter(
            message.data().decode() for message in received(client, topic, pulsar.schema.BytesSchema(), count)
        )
    finally:
        client.close()
