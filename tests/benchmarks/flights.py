"""The records of `make bench-formats`: the same fields in Spark, and by the schemas of the official client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message_factory import GetMessageClass
from pulsar.schema import (
    AvroSchema,
    Boolean,
    Double,
    Integer,
    JsonSchema,
    Long,
    ProtobufNativeSchema,
    Record,
    Schema,
    String,
)
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from eos.schema.protobuf_schema import message_descriptor
from tests.benchmarks.rows import KEYS
from tests.protobuf import proto

_LINES = (
    "optional string carrier = 1",
    "optional int32 flight = 2",
    "optional int32 delay = 3",
    "optional int64 distance = 4",
    "optional double share = 5",
    "optional bool late = 6",
)
FIELDS = ("carrier", "flight", "delay", "distance", "share", "late")


class Flight(Record):  # type: ignore[misc]
    """The record, as the official client declares it."""

    carrier = String()
    flight = Integer()
    delay = Integer()
    distance = Long()
    share = Double()
    late = Boolean()


def flights(session: SparkSession, rows: int) -> DataFrame:
    """Rows with a key, the fields, and `text`: their JSON as bytes; the same ones whenever they are computed."""
    number = F.col("id")
    fields = {
        "carrier": F.concat(F.lit("carrier "), number % 16),
        "flight": (number % 9_000).cast("int"),
        "delay": (number % 400 - 60).cast("int"),
        "distance": number * 7,
        "share": number / 7,
        "late": number % 3 == 0,
    }
    made = session.range(rows).select(
        F.concat(F.lit("key-"), number % KEYS).cast("binary").alias("key"),
        *(field.alias(name) for name, field in fields.items()),
    )
    return made.withColumn("text", F.to_json(F.struct(*FIELDS)).cast("binary"))


def in_avro() -> tuple[Schema, Callable[[Row], Any]]:
    """How the official client writes a row as AVRO."""
    return AvroSchema(Flight), lambda row: Flight(**{name: row[name] for name in FIELDS})


def in_protobuf() -> tuple[Schema, Callable[[Row], Any]]:
    """How the official client writes a row as protobuf."""
    made = GetMessageClass(message_descriptor(proto({"Flight": _LINES}), "the benchmark's message"))
    return ProtobufNativeSchema(made), lambda row: made(**{name: row[name] for name in FIELDS})


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "json": lambda: JsonSchema(Flight),
    "avro": lambda: in_avro()[0],
    "protobuf": lambda: in_protobuf()[0],
}
"""{value format of the sink: the schema of its topic}."""
