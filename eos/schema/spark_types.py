"""Which Spark type a schema's values have.

Every field is nullable in Spark, as with Spark's other sources: a query's schema stays the same when a field becomes
nullable. A field's own rule counts when it is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eos.schema.avro_text import Node
from eos.schema.description import Description, Pair, Primitive, Record

OF_PRIMITIVES: Mapping[str, DataType] = {
    "BYTES": BinaryType(),
    "STRING": StringType(),
    "BOOLEAN": BooleanType(),
    "INT8": ByteType(),
    "INT16": ShortType(),
    "INT32": IntegerType(),
    "INT64": LongType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "DATE": TimestampType(),
    "TIME": LongType(),
    "TIMESTAMP": TimestampType(),
    "INSTANT": TimestampType(),
    "LOCAL_DATE": DateType(),
    "LOCAL_TIME": LongType(),
    "LOCAL_DATE_TIME": TimestampNTZType(),
}
"""{kind: its type}. DATE and TIMESTAMP are Java's old classes: both are moments, in milliseconds since 1970.
TIME and LOCAL_TIME are the numbers that are stored: milliseconds since 1970, and nanoseconds since midnight."""

_OF_FIELDS: Mapping[tuple[str, str], DataType] = {
    ("boolean", ""): BooleanType(),
    ("int", ""): IntegerType(),
    ("long", ""): LongType(),
    ("float", ""): FloatType(),
    ("double", ""): DoubleType(),
    ("bytes", ""): BinaryType(),
    ("fixed", ""): BinaryType(),
    ("string", ""): StringType(),
    ("enum", ""): StringType(),
    ("int", "date"): DateType(),
    ("int", "time-millis"): IntegerType(),
    ("long", "time-micros"): LongType(),
    ("long", "timestamp-millis"): TimestampType(),
    ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(),
    ("long", "local-timestamp-micros"): TimestampNTZType(),
    ("uint32", ""): LongType(),
    ("uint64", ""): DecimalType(20, 0),
}


def spark_type(description: Description) -> DataType:
    """Return the type of the values that a schema describes.

    A key-value pair is a struct of `key` and `value`. Bytes inside JSON are text: Java writes base64, Python what it
    takes for text, and JSON does not say which.
    """
    if isinstance(description, Primitive):
        return OF_PRIMITIVES[description.kind]
    if isinstance(description, Record):
        return _of_node(description.node, in_json=description.format == "JSON")
    assert isinstance(description, Pair)
    pair = (("key", description.key), ("value", description.value))
    return StructType([StructField(name, spark_type(part)) for name, part in pair])


def _of_node(node: Node, *, in_json: bool) -> DataType:
    if node.kind == "record":
        return StructType([StructField(field.name, _of_node(field.node, in_json=in_json)) for field in node.fields])
    if node.items is not None:
        inner = _of_node(node.items, in_json=in_json)
        return ArrayType(inner) if node.kind == "array" else MapType(StringType(), inner)
    if node.logical == "decimal":
        return DecimalType(node.precision, node.scale)
    if in_json and node.kind in ("bytes", "fixed"):
        return StringType()
    return _OF_FIELDS[node.kind, node.logical]
