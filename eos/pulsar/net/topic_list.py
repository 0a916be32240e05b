"""The topics of a namespace, made of the names of their partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from eos.errors import Refused, TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import split_partition

AT_ONCE: Final = 8
"""How many topics are asked about side by side."""


def namespace_topics(client: Client, namespace: str, takes: Callable[[str], bool]) -> dict[str, int]:
    """Return the topics of a "tenant/namespace" by name, and how many partitions each has; 0: it is not partitioned.

    The partitions that brokers have removed, since they hold nothing, count too. A topic without partitions can have a
    partition's name, since older brokers let it be made, and since the partitioned topic may be gone. It is a topic of
    its own then. Brokers may refuse to load it.

    Args: the client; the namespace; whether a topic is wanted, by its name without a partition.

    Raises what `Client.topics` and `Client.partitions` raise, but for TopicMissing.
    """
    return _topics(client, namespace, takes, _partitions)


def topic_names(client: Client, namespace: str, takes: Callable[[str], bool]) -> list[str]:
    """Return the names of the topics that `namespace_topics` returns.

    Where the broker refuses to say whether there is a partitioned topic, as for want of a right, there is one by its
    partitions' names. Args: as of `namespace_topics`. Raises what `Client.topics` raises.
    """
    return list(_topics(client, namespace, takes, _partitions_by_names))


def _topics(
    client: Client,
    namespace: str,
    takes: Callable[[str], bool],
    partitions_of: Callable[[Client, str], int | None],
) -> dict[str, int]:
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
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="eos-topics") as pool:
        numbers = dict(zip(partitions, pool.map(partial(partitions_of, client), partitions), strict=True))
        found |= {topic: number for topic, number in numbers.items() if number}
        own = [physical for topic, listed in partitions.items() if not numbers[topic] for physical in listed]
        there = pool.map(partial(partitions_of, client), own)
        found |= {physical: 0 for physical, number in zip(own, there, strict=True) if number is not None}
    return dict(sorted(found.items()))


def _partitions(client: Client, topic: str) -> int | None:
    """Return the number of partitions; None for a topic that is gone."""
    try:
        return client.partitions(topic)
    except TopicMissing:
        return None


def _partitions_by_names(client: Client, topic: str) -> int | None:
    """Return the number of partitions, at least one where the broker refuses to say; None for a topic that is gone."""
    try:
        return _partitions(client, topic)
    except Refused:
        return 1
