"""What readers find in a topic that the sink has written to."""

from __future__ import annotations

from typing import Any

import pulsar as official
import pytest
from pyspark.sql import DataFrame, SparkSession

from eos.by_name.data_source import PulsarDataSource


def received(client: official.Client, topic: str, schema: Any, count: int) -> list[Any]:
    """Return what a consumer of the official client gets, which is so many messages and not one more."""
    start = official.InitialPosition.Earliest
    consumer = client.subscribe(topic, "all", schema=schema, initial_position=start)
    try:
        messages = [consumer.receive(60_000) for _ in range(count)]
        with pytest.raises(official.Timeout):
            consumer.receive(500)
    finally:
        consumer.close()
    return messages


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
