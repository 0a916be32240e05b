"""Shared parts of the sink's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from eos.by_name.data_source import PulsarDataSource
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


def version_of(message: Any) -> int:
    """Return the number of the schema version that a message of the official client carries."""
    version = message.schema_version()
    return int.from_bytes(version.encode("latin-1") if isinstance(version, str) else version, "big")


def read_in_this_process(pulsar: Any, topic: str) -> list[Any]:
    """Return the values that our source finds, without a Spark job."""
    source = PulsarDataSource({"service.url": pulsar.service_url, "valueformat": "schema", "topic": topic})
    reader = source.reader(source.schema())
    batches: Any = (batch for part in reader.partitions() for batch in reader.read(part))
    return [row["value"] for batch in batches for row in batch.to_pylist()]


def table(spark: SparkSession, pulsar: Any, topic: str) -> DataFrame:
    given = {"service.url": pulsar.service_url, "valueFormat": "schema", "topic": topic}
    return spark.read.format("pulsar").options(**given).load()
