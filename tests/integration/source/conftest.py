"""The source's tests write with this project's own client, frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from eos.source.options import parse_options
from tests.contract.conftest import produce as produce
from tests.integration.source.queries import Query
from tests.integration.source.streams import Stream

MakeStream = Callable[..., Stream]
Admin = Callable[..., None]
Run = Callable[..., Query]


@pytest.fixture
def run(pulsar: Any) -> Iterator[Run]:
    """Start a run of a query: `run(topic=…, startingOffsets=…)`. Runs share a subscription, as restarts do."""
    with ExitStack() as opened:

        def start(**options: str) -> Query:
            given = {"service.url": pulsar.service_url, "subscription": "job"} | options
            query = Query(parse_options(given, "stream"))
            opened.callback(query.brokers.close)
            return query

        yield start


@pytest.fixture
def make_stream(spark: SparkSession, pulsar: Any, tmp_path: Path) -> MakeStream:
    """Make a stream with a checkpoint of its own: `make_stream(topic=…, startingOffsets=…)`."""
    return lambda **options: Stream(spark, pulsar.service_url, tmp_path / "checkpoint", **options)


@pytest.fixture
def admin(pulsar: Any) -> Admin:
    """Ask the admin API about a topic: `admin("DELETE", topic, "truncate")`."""

    def ask(method: str, topic: str, path: str = "", body: object = None) -> None:
        where = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/{path}".rstrip("/")
        httpx.request(method, where, json=body, timeout=30, follow_redirects=True).raise_for_status()

    return ask
