"""The topic names that a user of the sink may write."""

from __future__ import annotations

import re

from eos.errors import InvalidInput
from eos.pulsar.protocol.topics import full_name

_FULL = re.compile(r"persistent://[-=:.\w]+/[-=:.\w]+/[^/\s]+")
_ONE_PARTITION = re.compile(r"-partition-\d+$")


def valid_topic(topic: str) -> str:
    """Return `persistent://tenant/namespace/name` for a short, middle or full topic name.

    Raises:
        InvalidInput: the name is malformed, names one partition, or isn't persistent.
    """
    if topic.startswith("non-persistent://"):
        raise InvalidInput(f"{topic!r} is not persistent: a transaction can't write to it. Use a persistent:// topic.")
    name = full_name(topic)
    if not _FULL.fullmatch(name):
        raise InvalidInput(
            f"{topic!r} is no topic name: write 'name', 'tenant/namespace/name' or 'persistent://tenant/namespace/name'."
        )
    if _ONE_PARTITION.search(name):
        raise InvalidInput(
            f"{topic!r} names one partition. Give the whole topic, and a column 'partition' to choose partitions."
        )
    return name
