"""The topics of a namespace."""

from __future__ import annotations

from dataclasses import dataclass

from eos.pulsar.net.client import Client
from eos.pulsar.net.topic_list import namespace_topics
from eos.pulsar.protocol.topics import check_namespace, is_hidden


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
    return [TopicTable(topic, number, _kind(client, topic)) for topic, number in listed(client, namespace).items()]


def listed(client: Client, namespace: str) -> dict[str, int]:
    """Return the topics that `tables` tells of, by name, and how many partitions each has. Raises as it."""
    check_namespace(namespace)
    return namespace_topics(client, namespace, lambda topic: not is_hidden(topic))


def _kind(client: Client, topic: str) -> str | None:
    registered = client.schema(topic)
    return None if registered is None else registered.kind
