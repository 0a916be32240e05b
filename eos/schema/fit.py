"""Whether columns, as Spark's `to_json` writes them, fit a JSON schema.

What is compared are types and names, before any row is there. A text may be any text, also where the schema lists
symbols; and a column may hold nulls, also where the schema has none, since nearly all columns of Spark may.
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
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eos.nearest import did_you_mean
from eos.schema.avro_text import Node, below

_SMALL = (ByteType, ShortType)
_TAKEN: Mapping[str, tuple[type[DataType], ...]] = {
    "boolean": (BooleanType,),
    "int": (*_SMALL, IntegerType),
    "long": (*_SMALL, IntegerType, LongType),
    "float": (*_SMALL, FloatType),
    "double": (*_SMALL, IntegerType, FloatType, DoubleType),
    "string": (StringType, DateType, TimestampType, TimestampNTZType),
    "enum": (StringType,),
    "bytes": (BinaryType,),
    "fixed": (BinaryType,),
}
"""{type of the schema: the types of Spark that `to_json` writes as such}. Bytes are base64, as Java reads them."""

_AS_NUMBERS = {
    "date": "unix_date(…)",
    "timestamp-millis": "unix_millis(…)",
    "timestamp-micros": "unix_micros(…)",
}
"""{logical type: what makes its number of a date or a timestamp, which `to_json` writes as text}."""


def misfit(columns: DataType, node: Node, path: str = "") -> str | None:
    """Return what doesn't fit, as a sentence; None where all does.

    Args: the type that is written; the schema; where it lies.
    """
    if node.kind == "record" and isinstance(columns, StructType):
        return _in_record(columns, node, path)
    if node.items is not None:
        if node.kind == "array" and isinstance(columns, ArrayType):
            return misfit(columns.elementType, node.items, f"{path}[]")
        if node.kind == "map" and isinstance(columns, MapType):
            return misfit(columns.valueType, node.items, f"{path}[]")
    elif node.logical == "decimal":
        if isinstance(columns, DecimalType) and _holds(node, columns):
            return None
    elif isinstance(columns, _TAKEN.get(node.kind, ())):
        return None
    return f"field {path!r} is {columns.simpleString()}, and the schema has {_named(node)}{_hint(columns, node)}."


def _in_record(columns: StructType, node: Node, path: str) -> str | None:
    known = {field.name: field for field in node.fields}
    for column in columns.fields:
        at = below(path, column.name)
        if column.name not in known:
            near = did_you_mean(column.name, known)
            return f"field {at!r} is {column.dataType.simpleString()}, and the schema has no such field.{near}"
        if wrong := misfit(column.dataType, known[column.name].node, at):
            return wrong
    for field in node.fields:
        if field.name not in columns.fieldNames() and not field.has_default and not field.node.nullable:
            at = below(path, field.name)
            return f"field {at!r} is missing, and the schema has {_named(field.node)}, neither null nor a default."
    return None


def _holds(node: Node, columns: DecimalType) -> bool:
    return columns.scale <= node.scale and columns.precision - columns.scale <= node.precision - node.scale


def _named(node: Node) -> str:
    if node.logical == "decimal":
        return f"decimal({node.precision},{node.scale})"
    return f"{node.kind} ({node.logical})" if node.logical else node.kind


def _hint(columns: DataType, node: Node) -> str:
    timed = isinstance(columns, DateType | TimestampType | TimestampNTZType)
    return f": write its number, by {_AS_NUMBERS[node.logical]}" if timed and node.logical in _AS_NUMBERS else ""
