"""The official Python client in foreachPartition: no transaction, what most jobs do today.

Generous: the client stays connected from one run to the next (Spark keeps its workers), only
the producer is made anew for each partition of the DataFrame. Batches are as large as helps it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pulsar
from pulsar.schema import BytesSchema, Schema
from pyspark import Accumulator
from pyspark.sql import DataFrame, Row

LARGEST_BATCH_MESSAGES = 10_000
LARGEST_BATCH_BYTES = 1024 * 1024
PENDING_MESSAGES = 50_000


Values = Callable[[], tuple[Schema, Callable[[Row], Any]]]
"""Makes the producer's schema, and what makes a row the value that it takes."""


def as_bytes() -> tuple[Schema, Callable[[Row], Any]]:
    """The column `value` as it is."""
    return BytesSchema(), lambda row: bytes(row.value)


class OfficialClient:
    """Writes a DataFrame by `send_async` from each of its partitions.

    Attributes:
        name: its name in the results.
    """

    name = "pulsar_client"

    def __init__(
        self, df: DataFrame, service_url: str, topic: str, *, name: str = name, values: Values = as_bytes
    ) -> None:
        self.name = name
        self._values = values
        self._df = df
        self._service_url = service_url
        self._topic = topic

    def run(self) -> int:
        """Write the rows; return how many the broker has acknowledged."""
        acknowledged = self._df.sparkSession.sparkContext.accumulator(0)
        service_url, topic, values = self._service_url, self._topic, self._values
        self._df.foreachPartition(lambda rows: _send(rows, service_url, topic, values, acknowledged))
        return acknowledged.value


def _send(rows: Iterable[Row], service_url: str, topic: str, values: Values, acknowledged: Accumulator[int]) -> None:
    schema, value_of = values()
    producer = shared_client(service_url).create_producer(
        topic,
        schema=schema,
        batching_enabled=True,
        batching_max_messages=LARGEST_BATCH_MESSAGES,
        batching_max_allowed_size_in_bytes=LARGEST_BATCH_BYTES,
        batching_max_publish_delay_ms=10,
        block_if_queue_full=True,
        max_pending_messages=PENDING_MESSAGES,
        max_pending_messages_across_partitions=4 * PENDING_MESSAGES,
    )
    stored = 0

    def answered(result: pulsar.Result, _: pulsar.MessageId) -> None:
        nonlocal stored
        stored += result == pulsar.Result.Ok

    for row in rows:
        producer.send_async(value_of(row), answered, partition_key=row.key.decode())
    producer.flush()
    producer.close()
    acknowledged.add(stored)


@cache
def shared_client(service_url: str) -> pulsar.Client:
    """Return the client of this process."""
    logger = logging.getLogger("pulsar")
    logger.setLevel(logging.ERROR)
    return pulsar.Client(service_url, logger=logger)
