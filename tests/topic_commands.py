"""What tests have a broker do to a topic: compact it, drop its duplicates, move the positions of its subscriptions."""

from __future__ import annotations

from typing import Literal, get_args

import httpx

from tests.clients import official_client
from tests.waiting import until


def compact(admin_url: str, topic: str) -> None:
    """Compact a physical topic, and wait until that is done."""
    where = f"{admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"
    httpx.put(where, timeout=30, follow_redirects=True).raise_for_status()
    until(
        lambda: httpx.get(where, timeout=30, follow_redirects=True).json()["status"] == "SUCCESS",
        f"{topic} was not compacted",
    )


def table_view(service_url: str, *topics: str) -> dict[str, str]:
    """Return the newest value of each key of physical topics, by table views of the official client."""
    found: dict[str, str] = {}
    with official_client(service_url) as client:
        for topic in topics:
            client.create_table_view(topic).for_each(lambda key, value: found.update({key: value.decode()}))
    return found


def deduplicate(admin_url: str, topic: str) -> None:
    """Switch deduplication of a topic without partitions on, and wait until the broker does it."""
    at = f"{admin_url}/admin/v2/{topic.replace('://', '/')}"
    httpx.post(f"{at}/deduplicationEnabled", json=True, timeout=30).raise_for_status()
    until(lambda: httpx.get(f"{at}/stats", timeout=30).json().get("deduplicationStatus") == "Enabled")


Move = Literal["expire", "skip_all", "skip", "truncate"]
MOVES: tuple[Move, ...] = get_args(Move)


def retain_for_good(admin_url: str, topic: str) -> None:
    """Let a topic retain everything: then nothing that is done to positions deletes a message."""
    retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    httpx.post(f"{_at(admin_url, topic)}/retention", json=retention, timeout=30).raise_for_status()


def move_positions(admin_url: str, topic: str, how: Move) -> None:
    """Move them. "expire" takes what is older than a second."""
    where = _at(admin_url, topic)
    if how == "expire":
        httpx.post(f"{where}/all_subscription/expireMessages/1", timeout=30)
    elif how == "truncate":
        httpx.delete(f"{where}/truncate", timeout=30).raise_for_status()
    else:
        path = "skip_all" if how == "skip_all" else "skip/100"
        for name in httpx.get(f"{where}/stats", timeout=30).raise_for_status().json()["subscriptions"]:
            httpx.post(f"{where}/subscription/{name}/{path}", timeout=30)


def _at(admin_url: str, topic: str) -> str:
    return f"{admin_url}/admin/v2/{topic.replace('://', '/')}"
