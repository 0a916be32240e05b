"""Streaming queries over the Pulsar source that collect what they read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId
from tests.planner import again_while_late

PATIENCE_S = 180


class Stream:
    """One streaming query with a checkpoint of its own, started as often as a test wants."""

    def __init__(self, spark: SparkSession, service_url: str, checkpoint: Path, **options: str) -> None:
        self.spark = spark
        self.checkpoint = checkpoint
        start = {} if "startingTime" in options else {"startingOffsets": "earliest"}
        self.options = {"service.url": service_url, "subscription": "job", **start} | {
            name.replace("__", "."): value for name, value in options.items()
        }
        self.batches: dict[int, list[Row]] = {}
        self.plans = 0

    def frame(self, schema: str | None = "value binary") -> DataFrame:
        stream = self.spark.readStream.format("pulsar").options(**self.options)
        return (stream if schema is None else stream.schema(schema)).load()

    def start(
        self, schema: str | None = "value binary", each: Callable[[DataFrame, int], None] | None = None, **trigger: Any
    ) -> StreamingQuery:
        def collect(batch: DataFrame, number: int) -> None:
            if each is not None:
                each(batch, number)
            self.batches[number] = batch.collect()

        writer = self.frame(schema).writeStream.foreachBatch(collect).option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()

    def run(self, schema: str | None = "value binary", **options: Any) -> list[Row]:
        """Read what is there, to its end, and return the rows that came in this run."""
        known = set(self.batches)

        def read() -> None:
            query = self.start(schema, availableNow=True, **options)
            assert query.awaitTermination(PATIENCE_S), "the query did not end"

        again_while_late(read)
        return [row for number in sorted(set(self.batches) - known) for row in self.batches[number]]


def values(rows: list[Row]) -> list[str]:
    return [bytes(row.value).decode() for row in rows]


def write(client: Client, topic: str, *messages: str) -> list[EntryId]:
    """Write each message as an entry of its own, and return where they are stored."""
    with client.producer(topic) as producer:
        receipts = [producer.send_record(message.encode(), None) for message in messages]
    return [EntryId(receipt.ledger, receipt.entry) for receipt in receipts]
