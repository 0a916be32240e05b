"""Three bookies for all soaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eos.local import LocalCluster
from tests.spark_session import spark as spark


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Three bookies and a ZooKeeper; the brokers are killed, for the machine's sake."""
    with LocalCluster() as cluster:
        for broker in ("broker-0", "broker-1"):
            cluster[broker].kill()
        yield cluster


@pytest.fixture
def zookeeper(cluster: LocalCluster) -> str:
    return cluster.zookeeper
