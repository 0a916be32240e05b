"""The topics of a namespace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from eos.errors import TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import check_namespace, is_hidden, split_partition


@dataclass(frozen=True, slots=True)
class TopicTable:
    """A topic.

    Attributes:
        topic: "persistent://tenant/namespace/name".
        partitions: how many, with those that brokers have removed since they hold nothing; 0: it is not partitioned.
        schema: the kind of its newest schema, such as "JSON", "INT32" or "KEY_VALUE"; None where it has none.
    """

    topic: str
    partitions: int
    schema: str | None


def tables(client: Client, namespace: str) -> list[TopicTable]:
    """Return the topics of a "tenant/namespace" by name, but for those that begin with two underscores.

    A topic all of whose partitions brokers have removed is not among them. A namespace that does not exist has none.
    Raises InvalidInput for a malformed name, and what `Client.topics` raises.
    """
    there = listed(client, namespace)
    return [TopicTable(topic, _number(client, topic, number), _kind(client, topic)) for topic, number in there.items()]


def listed(client: Client, namespace: str) -> dict[str, int]:
    """Return the topics that `tables` tells of, by name, and how many partitions of each are there. Raises as it."""
    check_namespace(namespace)
    parts = (split_partition(physical) for physical in client.topics(namespace))
    partitions = Counter[str]()
    for topic, number in parts:
        partitions[topic] += number is not None
    return {topic: partitions[topic] for topic in sorted(partitions) if not is_hidden(topic)}


def _number(client: Client, topic: str, there: int) -> int:
    """Return the number of partitions. Args: how many of them are there."""
    try:
        return max(there, client.partitions(topic)) if there else 0
    except TopicMissing:  # deleted just now
        return there


def _kind(client: Client, topic: str) -> str | None:
    registered = client.schema(topic)
    return None if registered is None else registered.kind
