"""What the tests of `statestore` share: addresses on a real ZooKeeper with a real bookie, and Spark jobs on them.

The session-wide `spark` knows `bk://` too. Hadoop keeps one file system for each authority (`host:port`) in a
process, with the options it was first used with: a test that needs other options takes `own_tree`, or a process of its
own (`run_job`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

RunJob = Callable[..., dict[str, Any]]
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
def run_job(tmp_path: Path) -> RunJob:
    """Run jobs.py in a process of its own: `run_job("count", checkpoint=…, files=…, master=…)`; returns its answer."""

    def run(job: str, **arguments: Any) -> dict[str, Any]:
        arguments.setdefault("master", "local[2]")
        finished = subprocess.run(
            [sys.executable, str(HERE / "jobs.py"), job, json.dumps(arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "TZ": "UTC"},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert finished.returncode == 0, finished.stderr[-6_000:]
        answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
        return answer

    return run
