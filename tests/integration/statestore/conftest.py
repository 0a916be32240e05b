"""Shared parts of the tests of `statestore`: addresses on a real ZooKeeper with a real bookie, and Spark jobs on them.

The session-wide `spark` knows `bk://` too. Hadoop keeps one file system for each authority (`host:port`) in a
process, with the options it was first used with: a test that needs other options takes `own_tree`, or a process of its
own (`run_job`).
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from statestore.checkpoint import committed, needs_of
from statestore.checkpoint.files import HadoopFiles
from statestore.hadoop.file_systems import Hadoop
from tests.child_process import ChildProcess, python
from tests.soak.queries import run
from tests.spark_session import quick_start

RunJob = Callable[..., dict[str, Any]]
StartJob = Callable[..., ChildProcess]
OwnTree = tuple[str, dict[str, str]]


@pytest.fixture(scope="session")
def zookeeper(pulsar: Any) -> str:
    """host:port of a ZooKeeper that has at least one bookie under /ledgers."""
    return os.environ.get("EOS_TEST_ZOOKEEPER") or str(pulsar.zookeeper)


@pytest.fixture
def bk(zookeeper: str) -> str:
    """The address of a folder for one test: bk://host:port/<random>. It does not exist yet."""
    return f"bk://{zookeeper}/{uuid.uuid4().hex[:10]}"


@pytest.fixture
def own_tree(zookeeper: str) -> OwnTree:
    """An address whose tree of names is the test's alone, and the options that go with it: bk://t<random>/."""
    name = f"t{uuid.uuid4().hex[:10]}"
    options = {f"fs.bk.{name}.metadata-service-uri": f"zk://{zookeeper}/ledgers", "fs.bk.root": f"/{name}"}
    return f"bk://{name}/", options


@pytest.fixture
def start_job(tmp_path: Path) -> Iterator[StartJob]:
    """Start jobs.py in a process of its own, killed at the end: `start_job("count", checkpoint=…, files=…)`."""
    with contextlib.ExitStack() as stack:

        def start(job: str, **arguments: Any) -> ChildProcess:
            command = python("tests.integration.statestore.jobs", job, {"master": "local[2]", **arguments})
            environment = {**quick_start(with_bk=True), "TZ": "UTC"}
            return stack.enter_context(ChildProcess(command, tmp_path / "job.log", environment))

        yield start


@pytest.fixture
def run_job(start_job: StartJob) -> RunJob:
    """Run jobs.py to its end: `run_job("count", checkpoint=…, files=…, master=…)`; returns its answer."""
    return lambda job, **arguments: start_job(job, **arguments).answer()


@contextlib.contextmanager
def raw_zookeeper(hadoop: Hadoop, servers: str) -> Iterator[Any]:
    """A ZooKeeper client of the JVM, a Java object, to look without the jar."""
    zookeeper = hadoop.jvm.org.apache.bookkeeper.zookeeper.ZooKeeperClient.newBuilder()
    client = zookeeper.connectString(servers).sessionTimeoutMs(10_000).build()
    try:
        yield client
    finally:
        client.close()


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
