"""Schemas as the registry gives them, for tests."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from eos.pulsar.protocol.schemas import Registered
from eos.schema.avro_values import AvroDecoder
from eos.schema.description import Record, described
from eos.schema.spark_types import spark_type
from tests.protobuf import Messages, proto

TOPIC = "persistent://public/default/t"
GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "schema_values.json").read_text(encoding="utf-8")
)
"""What the Java client's schemas write."""


def golden(asked: str) -> tuple[Registered, bytes]:
    """Return the schema of one of these, and its value."""
    (vector,) = (one for one in GOLDEN if one["asked"] == asked)
    definition = bytes.fromhex(vector["definition"])
    return registered(vector["kind"], definition, vector["properties"]), bytes.fromhex(vector["value"])


def registered(
    kind: str, definition: Any = b"", properties: Mapping[str, str] | None = None, number: int = 0
) -> Registered:
    """Return a schema; what defines it may be given as the JSON that it is."""
    data = definition if isinstance(definition, bytes) else json.dumps(definition).encode()
    return Registered(TOPIC, number.to_bytes(8, "big"), kind, data, properties or {})


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return Avro's JSON of a record."""
    return {"type": "record", "name": "R", "fields": list(fields)} | more


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """Return Avro's JSON of a field."""
    return {"name": name, "type": kind} | more


def described_as(schema: Any) -> Record:
    """Return the description of a record, given as Avro's JSON."""
    found = described(registered("AVRO", schema))
    assert isinstance(found, Record)
    return found


def in_avro(schema: Any, value: Any) -> bytes:
    """Return a value as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def avro_decoder(writer: Any, reader: Any) -> AvroDecoder:
    """Return the decoder of what was written by one schema, for who reads by another."""
    ours = described_as(reader)
    return AvroDecoder(described_as(writer), ours, arrow_type(ours))


def arrow_type(record: Record) -> pa.DataType:
    """Return the type of a record's column."""
    return to_arrow_type(spark_type(record), timezone="UTC")


def native(
    messages: Messages, enums: Mapping[str, Sequence[str]] | None = None, *, syntax: str = "proto3", number: int = 0
) -> Registered:
    """Return a topic's schema of the first message; `proto` has the arguments."""
    return registered("PROTOBUF_NATIVE", proto(messages, enums, syntax=syntax), number=number)


AIRPORT = {"code": "JFK", "latitude": 40.6}
GOLDEN_FLIGHT = {
    "carrier": "größer",
    "delay": -7,
    "destination": None,
    "distance": 2**40,
    "gate": None,
    "late": True,
    "legs": ["JFK", ""],
    "origin": AIRPORT,
    "seats": [("economy", 120), ("first", 8)],
    "share": 0.5,
    "speed": 0.1,
    "status": "LATE",
    "stops": [AIRPORT],
    "tail": b"\x00\xff",
}
"""The record of the golden vectors, as its AVRO value is read."""
