"""What typed values cost over raw bytes: python -m tests.benchmarks.typed_values.

CPU of the process, the median of five rounds in turn, for entries of 1,000 messages: the columns of the source, with
the value as bytes and as the topic's schema has it. A record has a text, a whole number, a broken one and a flag, all
of them nullable but the number, as the official clients write them.
"""

from __future__ import annotations

import io
import json
import statistics
import struct
import time
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source.columns import ALL, SourceColumns
from eos.source.value_schema import TypedValues, shared_schema

ROWS = 100_000
ROUNDS = 5
TOPIC = "persistent://public/default/t"
RECORD: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": ["null", "string"]},
        {"name": "delay", "type": "int"},
        {"name": "speed", "type": ["null", "double"]},
        {"name": "late", "type": ["null", "boolean"]},
    ],
}
WITH_MAP = RECORD | {"fields": [*RECORD["fields"], {"name": "seats", "type": {"type": "map", "values": "int"}}]}


def flight(row: int) -> dict[str, Any]:
    """Return one record."""
    return {"carrier": f"carrier {row % 16}", "delay": row, "speed": row / 7, "late": row % 2 == 0}


def avro(row: int) -> bytes:
    """Return one record as AVRO."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(RECORD), flight(row))
    return out.getvalue()


CASES: dict[str, tuple[str, Any, Any]] = {
    "STRING": ("STRING", None, lambda row: f"a text of some length, number {row}".encode()),
    "INT64": ("INT64", None, lambda row: struct.pack(">q", row)),
    "JSON": ("JSON", RECORD, lambda row: json.dumps(flight(row)).encode()),
    "JSON with a map": ("JSON", WITH_MAP, lambda row: json.dumps(flight(row) | {"seats": {"first": row}}).encode()),
    "AVRO": ("AVRO", RECORD, avro),
}
"""{name: kind of schema, its text, the value of a row}."""


def entries(values: list[bytes]) -> list[Entry]:
    """Return ROWS rows in entries of these."""
    (chunk,) = BatchEncoder(target_bytes=4 * 1024 * 1024).chunks(pa.record_batch({"value": values}))
    payload = bytes(chunk.payload)
    described = MessageMetadata(
        producer_name="p", publish_time=1, num_messages_in_batch=len(values), schema_version=bytes(8)
    )
    return [Entry(EntryId(1, place), described, payload, len(payload)) for place in range(ROWS // len(values))]


def cost(columns: SourceColumns, group: Sequence[Entry]) -> float:
    """Return nanoseconds of CPU a row."""
    begin = time.process_time_ns()
    assert sum(columns.batch(group[place : place + 10]).num_rows for place in range(0, len(group), 10)) == ROWS
    return (time.process_time_ns() - begin) / ROWS


def main() -> None:
    """Measure and print."""
    for name, (kind, text, value) in CASES.items():
        group = entries([value(row) for row in range(1000)])
        schema = Registered(TOPIC, bytes(8), kind, b"" if text is None else json.dumps(text).encode(), {})
        shared = shared_schema({TOPIC: schema})
        typed = SourceColumns(
            StructType([StructField("value", shared.spark_type)]),
            TOPIC,
            TypedValues(shared, TOPIC, lambda topic, version, found=schema: found),  # type: ignore[misc]
        )
        raw = SourceColumns(StructType([ALL["value"]]), TOPIC)
        rounds = [(cost(raw, group), cost(typed, group)) for _ in range(ROUNDS)]
        as_bytes, as_schema = (statistics.median(times) for times in zip(*rounds, strict=True))
        print(f"{name:<16} {as_schema:7.0f} ns a row, as bytes {as_bytes:4.0f}: {as_schema / as_bytes:6.1f} times")


if __name__ == "__main__":
    main()
