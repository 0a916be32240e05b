"""Topics of the benchmark's own, and what the broker says has been published there."""

from __future__ import annotations

from typing import Protocol

import httpx

PARTITIONS = 4


class Broker(Protocol):
    """Where to write: `eos.local.LocalPulsar`, or one that runs already."""

    @property
    def service_url(self) -> str:
        """pulsar://host:port."""

    @property
    def admin_url(self) -> str:
        """http://host:port."""


def create_topic(broker: Broker, name: str, partitions: int = PARTITIONS) -> str:
    """Create a partitioned topic in public/default and return its full name."""
    path = f"{broker.admin_url}/admin/v2/persistent/public/default/{name}/partitions"
    httpx.put(path, json=partitions, timeout=60).raise_for_status()
    return f"persistent://public/default/{name}"


def published(broker: Broker, topic: str) -> int:
    """How many messages the broker has taken in on all partitions, those of aborted transactions among them."""
    path = f"{broker.admin_url}/admin/v2/{topic.replace('://', '/')}/partitioned-stats"
    answer = httpx.get(path, timeout=60)
    answer.raise_for_status()
    return int(answer.json()["msgInCounter"])
