"""Read a topic to its very end with the official client, after later transactions have ended on it."""

from __future__ import annotations

import pulsar

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
