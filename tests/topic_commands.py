"""What tests have a broker do to a topic: compact it, drop its duplicates, move the positions of its subscriptions."""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

import httpx

from eos.pulsar.net.admin import Admin
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


def retain_nothing(admin_url: str, topic: str) -> None:
    """Let a topic keep only what a subscription still needs, as Pulsar does by default."""
    where, nothing = _at(admin_url, topic), {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    asked = partial(httpx.post, f"{where}/retention", json=nothing, timeout=30)
    until(lambda: asked().is_success, "the topic took no policy", pause_s=0.3)


def delete_ledgers(admin_url: str, topic: str, count: int | None = None) -> None:
    """Have the broker delete the first ledgers of a topic, and wait for it: nothing may need them any longer.

    Args: the admin API's URL; the physical topic; how many. Default: all that it has now.
    """
    retain_nothing(admin_url, topic)
    with Admin(admin_url) as admin:
        ledgers = {one.id for one in admin.ledgers(topic)[:count]}
    until_deleted(admin_url, topic, ledgers)


def until_deleted(admin_url: str, topic: str, ledgers: set[int]) -> None:
    """Wait until the broker has deleted ledgers that nothing needs."""
    with Admin(admin_url) as admin:

        def gone() -> bool:
            httpx.put(f"{_at(admin_url, topic)}/unload", timeout=30).raise_for_status()
            trim(admin_url, topic)
            return not ledgers & {one.id for one in admin.ledgers(topic)}

        until(gone, f"the ledgers of {topic} were not deleted", pause_s=0.3)


def trim(admin_url: str, topic: str) -> None:
    """Have the broker delete ledgers that nothing needs. After an unload it may answer with an error: ask again."""
    httpx.post(f"{_at(admin_url, topic)}/trim", timeout=30)


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
