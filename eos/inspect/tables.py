"""The topics of a namespace."""

from __future__ import annotations

from dataclasses import dataclass

from eos.pulsar.net.client import Client
from eos.pulsar.net.topic_list import namespace_topics, topic_names
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
    check_namespace(namespace)
    numbers = namespace_topics(client, namespace, _is_shown)
    return [TopicTable(topic, number, _kind(client, topic)) for topic, number in numbers.items()]


def listed(client: Client, namespace: str) -> list[str]:
    """Return the names of the topics that `tables` tells of. Raises as it, but for refusals of one topic."""
    check_namespace(namespace)
    return topic_names(client, namespace, _is_shown)


def _is_shown(topic: str) -> bool:
    return not is_hidden(topic)


def _kind(client: Client, topic: str) -> str | None:
    registered = client.schema(topic)
    return None if registered is None else registered.kind
