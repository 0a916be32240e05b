"""Checkpoints on bk:// that tests share, one for each provider. A test that damages one puts it right again."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.soak.queries import run

BATCHES = 5
QUERIES = {"hdfs": "aggregation", "rocksdb": "deduplication", "changelog1": "transform", "changelog2": "join"}


@pytest.fixture(scope="session")
def checkpoints(spark: Any, zookeeper: str) -> dict[str, str]:
    """The address of each provider's checkpoint."""
    root = f"bk://{zookeeper}/{uuid.uuid4().hex[:10]}"
    for provider, query in QUERIES.items():
        run(spark, provider, query, f"{root}/{provider}", BATCHES)
    return {provider: f"{root}/{provider}" for provider in QUERIES}
