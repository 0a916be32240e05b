"""Names of topics, as Pulsar reads them (TopicName of pulsar-common)."""

from __future__ import annotations

COORDINATOR_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"
"""The partitioned topic whose partitions are the transaction coordinators (SystemTopicNames)."""


def full_name(topic: str) -> str:
    """Return the name with scheme, tenant and namespace: "t" is persistent://public/default/t."""
    if "://" in topic:
        return topic
    if topic.count("/") == 2:
        return f"persistent://{topic}"
    return f"persistent://public/default/{topic}"


def partition_name(topic: str, partition: int) -> str:
    """Return the name of one physical partition of a partitioned topic."""
    return f"{topic}-partition-{partition}"
