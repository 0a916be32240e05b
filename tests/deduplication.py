"""Topics whose duplicates the broker drops."""

from __future__ import annotations

import httpx

from tests.waiting import until


def deduplicate(admin_url: str, topic: str) -> None:
    """Switch deduplication of a topic without partitions on, and wait until the broker does it."""
    at = f"{admin_url}/admin/v2/{topic.replace('://', '/')}"
    httpx.post(f"{at}/deduplicationEnabled", json=True, timeout=30).raise_for_status()
    until(lambda: httpx.get(f"{at}/stats", timeout=30).json().get("deduplicationStatus") == "Enabled")
