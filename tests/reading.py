"""Read a topic to its very end with the official client, without waiting for silence.

A last message is sent to each partition; everything before it has been read when it arrives. It
arrives only after every open transaction on the partition has ended, so a frozen partition fails.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

import pulsar

from tests.crash.process import end_later_transactions

_END = "end-of-reading"
_LONGEST_WAIT_MS = 30_000


def messages_of(service_url: str, topic: str) -> list[pulsar.Message]:
    """Return all messages of a topic, by a fresh subscription, after later transactions have ended on it.

    Raises AssertionError when a partition can't be read to its end.
    """
    end_later_transactions(service_url, topic)
    return list(_read(service_url, topic))


def values_of(service_url: str, topic: str) -> list[str]:
    """Return the payload of each message as text, copies included."""
    return [message.data().decode() for message in messages_of(service_url, topic)]


def _read(service_url: str, topic: str) -> Iterator[pulsar.Message]:
    mark = uuid.uuid4().hex
    client = pulsar.Client(service_url, logger=logging.getLogger("tests.official_client"))
    try:
        partitions = client.get_topic_partitions(topic)
        for partition in partitions:
            client.create_producer(partition).send(b"", properties={_END: mark})
        consumer = client.subscribe(topic, mark, initial_position=pulsar.InitialPosition.Earliest)
        left = set(partitions)
        while left:
            try:
                message = consumer.receive(timeout_millis=_LONGEST_WAIT_MS)
            except pulsar.Timeout:
                raise AssertionError(f"readers are held up on {sorted(left)}: a transaction was left open") from None
            end = message.properties().get(_END)
            if end is None:
                yield message
            elif end == mark:
                left.discard(message.topic_name())
        consumer.unsubscribe()
    finally:
        client.close()
