"""The topics of a namespace, made of the names of their partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from eos.errors import TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import split_partition


def namespace_topics(client: Client, namespace: str, takes: Callable[[str], bool]) -> dict[str, int]:
    """Return the topics of a "tenant/namespace" by name, and how many partitions each has; 0: it is not partitioned.

    The partitions that brokers have removed, since they hold nothing, count too. A topic without partitions can have a
    partition's name, since older brokers let it be made, and since the partitioned topic may be gone. It is a topic of
    its own then. Brokers may refuse to load it.

    Args: the client; the namespace; whether a topic is wanted, by its name without a partition.

    Raises what `Client.topics` raises.
    """
    found: dict[str, int] = {}
    partitions: dict[str, list[str]] = defaultdict(list)
    for physical in client.topics(namespace):
        topic, number = split_partition(physical)
        if not takes(topic):
            continue
        if number is None:
            found[topic] = 0
        else:
            partitions[topic].append(physical)
    for topic, listed in partitions.items():
        if number := _partitions(client, topic):
            found[topic] = number
        else:
            found |= {physical: 0 for physical in listed if _partitions(client, physical) is not None}
    return dict(sorted(found.items()))


def _partitions(client: Client, topic: str) -> int | None:
    """Return the number of partitions; None for a topic that is gone."""
    try:
        return client.partitions(topic)
    except TopicMissing:
        return None
