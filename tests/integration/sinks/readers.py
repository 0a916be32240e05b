"""What readers find in a topic that the sink has written to."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from eos.by_name.data_source import PulsarDataSource


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
