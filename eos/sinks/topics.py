"""The topic names that a user of the sink may write."""

from __future__ import annotations

from eos.errors import InvalidInput
from eos.pulsar.protocol.topics import persistent_name, split_partition


def valid_topic(topic: str) -> str:
    """Return `persistent://tenant/namespace/name` for a short, middle or full topic name.

    Raises:
        InvalidInput: the name is malformed, names one partition, or isn't persistent.
    """
    if topic.startswith("non-persistent://"):
        raise InvalidInput(f"{topic!r} is not persistent: a transaction can't write to it. Use a persistent:// topic.")
    name = persistent_name(topic)
    if split_partition(name)[1] is not None:
        raise InvalidInput(
            f"{topic!r} names one partition. Give the whole topic, and a column 'partition' to choose partitions."
        )
    return name
