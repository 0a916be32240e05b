"""Compact a topic, and read what is left as the newest value of each key."""

from __future__ import annotations

import httpx
import pulsar as official

from tests.waiting import until


def compact(admin_url: str, topic: str) -> None:
    """Compact a physical topic, and wait until that is done."""
    where = f"{admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"
    httpx.put(where, timeout=30).raise_for_status()
    until(lambda: httpx.get(where, timeout=30).json()["status"] == "SUCCESS", f"{topic} was not compacted")


def table_view(service_url: str, *topics: str) -> dict[str, str]:
    """Return the newest value of each key of physical topics, by table views of the official client."""
    found: dict[str, str] = {}
    client = official.Client(service_url)
    try:
        for topic in topics:
            client.create_table_view(topic).for_each(lambda key, value: found.update({key: value.decode()}))
    finally:
        client.close()
    return found
