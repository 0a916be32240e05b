"""What the sink's tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eos.local import jars
from tests.integration.sinks.bad_input import World
from tests.java_peer import JavaPeer

InWorld = Callable[[str], World]


@pytest.fixture
def in_world(spark: SparkSession, pulsar: Any, tmp_path: Path) -> InWorld:
    """Make sinks and rows for a topic: `in_world(topic).sink(value_format="avro")`."""
    return lambda topic: World(spark, pulsar.service_url, pulsar.admin_url, topic, tmp_path)


@pytest.fixture(scope="module")
def in_java(pulsar: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    """Tells what the Java client's schema API finds in a topic; `ReadBySchema` says how to ask."""
    source = Path(__file__).with_name("ReadBySchema.java")
    folder = tmp_path_factory.mktemp("java")
    with JavaPeer(source, folder, jars.classpath(), [pulsar.service_url], ["-Xmx300m"]) as peer:
        yield peer
