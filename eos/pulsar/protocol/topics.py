"""Names of topics, as Pulsar reads them (TopicName of pulsar-common)."""

from __future__ import annotations

import re

COORDINATOR_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"
"""The partitioned topic whose partitions are the transaction coordinators (SystemTopicNames)."""


_PARTITION = re.compile(r"-partition-\d+$")


def full_name(topic: str) -> str:
    """Return the name with scheme, tenant and namespace: "t" is persistent://public/default/t."""
    if "://" in topic:
        return topic
    if topic.count("/") == 2:
        return f"persistent://{topic}"
    return f"persistent://public/default/{topic}"


def whole_topic(partition: str) -> str:
    """Return the name of the topic that a physical partition belongs to; a topic without partitions is its own."""
    return _PARTITION.sub("", full_name(partition))


def partition_name(topic: str, partition: int) -> str:
    """Return the name of one physical partition of a partitioned topic."""
    return f"{topic}-partition-{partition}"
