"""Data sources in Python that the source is compared with. Spark's workers import this file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pulsar
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from tests.benchmarks.official_client import shared_client

COLUMNS = "value binary, __key binary"
_SCHEMA = pa.schema([("value", pa.binary()), ("__key", pa.binary())])
_BATCH_ROWS = 10_000
_QUEUE = 50_000
_SILENCE_MS = 60_000


@dataclass
class Part(InputPartition):
    """The first rows of a topic partition.

    Attributes:
        number: the partition.
        rows: how many.
    """

    number: int
    rows: int


class _Source(DataSource):
    """Columns `value` and `__key`. Options: partitions, and rows of each partition."""

    def schema(self) -> str:
        return COLUMNS


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        rows = int(self._options["rows"])
        return [Part(number, rows) for number in range(int(self._options["partitions"]))]


class ClientSource(_Source):
    """Reads a topic by the official Python client, which stays connected where Spark keeps the worker."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "bench-pulsar-client"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader; further options: service, topic."""
        return _ClientReader(dict(self.options))


class _ClientReader(_Reader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        reader = shared_client(self._options["service"]).create_reader(
            f"{self._options['topic']}-partition-{partition.number}",
            pulsar.MessageId.earliest,
            receiver_queue_size=_QUEUE,
        )
        left = partition.rows
        while left:
            values, keys = [], []
            for _ in range(min(left, _BATCH_ROWS)):
                message = reader.read_next(_SILENCE_MS)
                values.append(message.data())
                keys.append(message.partition_key())
            left -= len(values)
            columns = [pa.array(values, pa.binary()), pa.array(keys, pa.string()).cast(pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
        reader.close()


class ReadySource(DataSource):
    """Hands out the same rows again and again, made beforehand: no Python source of them can be faster."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "bench-ready"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader; options: partitions, rows of each, and file, with rows as Arrow's streams have them."""
        return _ReadyReader(dict(self.options))


class _ReadyReader(_Reader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        with pa.ipc.open_stream(self._options["file"]) as stream:
            (ready,) = stream
        for begin in range(0, partition.rows, ready.num_rows):
            yield ready.slice(0, partition.rows - begin)


class EmptyStream(_Source):
    """A stream of one row in each micro-batch, for which nothing is done."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "bench-empty"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader."""
        return _EmptyStreamReader()


class _EmptyStreamReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
        return {"row": start["row"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Part(0, end["row"] - start["row"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        rows = [b"1"] * partition.rows
        yield pa.RecordBatch.from_arrays([pa.array(rows), pa.array(rows)], schema=_SCHEMA)
