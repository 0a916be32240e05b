"""Names of topics, as Pulsar reads them (TopicName of pulsar-common)."""

from __future__ import annotations

import re

from eos.errors import InvalidInput

COORDINATOR_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"
"""The partitioned topic whose partitions are the transaction coordinators (SystemTopicNames)."""


NAMESPACE = re.compile(r"[-=:.\w]+/[-=:.\w]+", re.ASCII)
"""tenant/namespace."""

_FULL = re.compile(r"persistent://[-=:.\w]+/[-=:.\w]+/[^/\s]+")
_PARTITION = re.compile(r"(.+)-partition-(0|[1-9]\d{0,9})", re.ASCII)
_MOST_PARTITION = 2**31 - 1


def check_namespace(namespace: str) -> None:
    """Raise InvalidInput for what is no "tenant/namespace"."""
    if not NAMESPACE.fullmatch(namespace):
        raise InvalidInput(f"{namespace!r} is not a namespace. Write tenant/namespace, such as public/default")


def full_name(topic: str) -> str:
    """Return the name with scheme, tenant and namespace: "t" is persistent://public/default/t."""
    if "://" in topic:
        return topic
    if topic.count("/") == 2:
        return f"persistent://{topic}"
    return f"persistent://public/default/{topic}"


def namespace_of(topic: str) -> str:
    """Return the tenant/namespace of a full name."""
    return "/".join(topic.partition("://")[2].split("/")[:2])


def whole_topic(partition: str) -> str:
    """Return the name of the topic that a physical partition belongs to; a topic without partitions is its own."""
    return split_partition(full_name(partition))[0]


def physical_topics(topic: str, partitions: int) -> list[str]:
    """Return the physical topics of a topic with so many partitions; with 0 it is its own."""
    return [partition_name(topic, part) for part in range(partitions)] if partitions else [topic]


def partition_name(topic: str, partition: int) -> str:
    """Return the name of one physical partition of a partitioned topic."""
    return f"{topic}-partition-{partition}"


def persistent_name(topic: str) -> str:
    """Return the full name of a persistent topic. Raises InvalidInput for a malformed or non-persistent one."""
    name = full_name(topic)
    if not _FULL.fullmatch(name):
        why = " It has a blank." if any(map(str.isspace, name)) else ""
        raise InvalidInput(
            f"{topic!r} is not a topic name.{why} Write 'name', 'tenant/namespace/name' or "
            "'persistent://tenant/namespace/name'."
        )
    return name


def is_persistent(topic: str) -> bool:
    """Tell whether a full name is that of a topic whose messages brokers store."""
    return topic.startswith("persistent://")


def is_hidden(topic: str) -> bool:
    """Tell whether a topic's own name begins with two underscores, as those of Pulsar itself and of control topics do.

    Those of its tenant and namespace may begin so, as public/__kafka. Args: the full name.
    """
    return topic.rpartition("/")[2].startswith("__")


def split_partition(physical: str) -> tuple[str, int | None]:
    """Return the topic that a physical topic is a partition of, and its number; None for one without partitions.

    For Pulsar t-partition-01 and t-partition-99999999999 are whole topics (TopicName.getPartitionIndex).
    """
    found = _PARTITION.fullmatch(physical)
    if found is None or int(found[2]) > _MOST_PARTITION:
        return physical, None
    return found[1], int(found[2])


def is_partition(physical: str) -> bool:
    """Tell whether Pulsar takes a name for that of a partition."""
    return split_partition(physical)[1] is not None


def valid_topic(topic: str) -> str:
    """Return `persistent://tenant/namespace/name` for a short, middle or full topic name.

    Raises:
        InvalidInput: the name is malformed, names one partition, or isn't persistent.
    """
    if topic.startswith("non-persistent://"):
        raise InvalidInput(f"{topic!r} is not persistent. A transaction can't write to it. Use a persistent:// topic.")
    name = persistent_name(topic)
    if is_partition(name):
        raise InvalidInput(
            f"{topic!r} names one partition. Give the whole topic, and a column 'partition' to choose partitions."
        )
    return name
