"""Topics whose duplicates the broker drops."""

from __future__ import annotations

import httpx

from eos.pulsar.net.admin import Admin
from eos.pulsar.protocol.topics import physical_topics
from tests.waiting import until


def deduplicate(admin_url: str, topic: str, partitions: int = 0, *, on: bool = True) -> None:
    """Switch deduplication of a topic on or off, and wait until the broker does it on each partition."""
    path = topic.replace("://", "/")
    httpx.post(f"{admin_url}/admin/v2/{path}/deduplicationEnabled", json=on, timeout=30).raise_for_status()
    with Admin(admin_url) as admin:
        for one in physical_topics(topic, partitions):
            until(lambda one=one: (admin.deduplication(one) == "Enabled") == on)  # type: ignore[misc]
