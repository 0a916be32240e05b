"""Durable subscriptions that reads have left behind: a killed worker or planner deletes none, and each is backlog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from eos.errors import Refused, TopicMissing
from eos.pulsar.net.admin import if_there

LEFT: Final = re.compile(r"(?:^|.*[^0-9A-Za-z])spark-batch-(?:[0-9A-Za-z_-]+-)?[0-9a-f]{32}-[0-9]+")
"""The names of `eos.source.batch.retaining_name`, after any prefix. A stream's own is named otherwise."""

_IN_USE: Final = "412"
"""How the admin API refuses to delete a subscription that has consumers (PersistentTopicsBase)."""


class SubscriptionsPort(Protocol):
    """The questions to the admin API."""

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        """Return the names of a physical topic's durable subscriptions."""
        ...

    def unsubscribe(self, topic: str, subscription: str) -> None:
        """Delete a durable subscription that no consumer is connected to. Raises Refused where one is."""
        ...


@dataclass(frozen=True, slots=True)
class Leftover:
    """A subscription of a read on a physical topic."""

    topic: str
    subscription: str


def remove_leftovers(admin: SubscriptionsPort, physical_topics: Iterable[str]) -> Iterator[Leftover]:
    """Delete the subscriptions of reads that no consumer is connected to, and yield each that was deleted.

    Raises Refused where the role may not.
    """
    for topic in physical_topics:
        for name in if_there(admin.subscriptions, topic) or ():
            if LEFT.fullmatch(name):
                try:
                    admin.unsubscribe(topic, name)
                except TopicMissing:  # it, or its topic, was deleted just now
                    continue
                except Refused as error:
                    if error.code != _IN_USE:
                        raise
                    continue  # a read is under way
                yield Leftover(topic, name)
