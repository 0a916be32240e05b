"""Moving the positions of all subscriptions of a topic, those of readers too, by each command of a broker."""

from __future__ import annotations

from typing import Literal, get_args

import httpx

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
