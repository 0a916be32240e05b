"""How times are shown."""

from __future__ import annotations

from datetime import UTC, datetime


def in_utc(milliseconds: float) -> str:
    """Write milliseconds since 1970 in ISO 8601: 2026-11-24T12:00:00.000Z."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
