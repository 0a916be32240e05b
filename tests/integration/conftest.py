"""Shared parts of integration tests: one Spark session, the official client, and schemas of topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.clients import ours as ours
from tests.clients import theirs as theirs
from tests.spark_session import spark as spark

Register = Callable[..., None]


@pytest.fixture
def register(pulsar: Any) -> Register:
    """Register a schema by the admin API: `register(topic, "INT32")`."""

    def register(topic: str, kind: str, definition: str = "", **properties: str) -> None:
        where = f"{pulsar.admin_url}/admin/v2/schemas/{topic.removeprefix('persistent://')}/schema"
        body = {"type": kind, "schema": definition, "properties": properties}
        httpx.post(where, json=body, timeout=30, follow_redirects=True).raise_for_status()

    return register
