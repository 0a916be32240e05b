"""Checkpoints on bk:// that tests share, one for each provider. A test that damages one puts it right again."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import pytest

from statestore.checkpoint import committed, needs_of
from statestore.checkpoint.files import HadoopFiles
from statestore.hadoop.file_systems import Hadoop
from tests.soak.queries import run

BATCHES = 5
QUERIES = {"hdfs": "aggregation", "rocksdb": "deduplication", "changelog1": "transform", "changelog2": "join"}


@pytest.fixture(scope="session")
def checkpoints(spark: Any, zookeeper: str) -> dict[str, str]:
    """The address of each provider's checkpoint."""
    root = f"bk://{zookeeper}/{uuid.uuid4().hex[:10]}"
    # Maintenance can take longer than the 100 batches that Spark keeps; the tests ask for the first ones.
    settings = {"spark.sql.streaming.minBatchesToRetain": "10000"}
    for provider, query in QUERIES.items():
        uri = f"{root}/{provider}"
        # Spark's maintenance makes the first snapshot of a changelog, when it comes round to it.
        ready = {} if provider == "hdfs" else {"enough": partial(_has_tables, uri)}
        run(spark, provider, query, uri, BATCHES, settings=settings, **ready)
    return {provider: f"{root}/{provider}" for provider in QUERIES}


def _has_tables(uri: str) -> bool:
    """Whether the newest batch needs a table of RocksDB's; then later ones do, too."""
    files = HadoopFiles(Hadoop.of(), uri)
    return any(need.kind == "table" for need in needs_of(files, committed(files)[-1]).files.values())
