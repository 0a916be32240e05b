"""Whether columns fit a schema: a JSON schema as Spark's `to_json` writes them, an AVRO schema as `AvroEncoder` does.

The check compares types and names, before any row is there. A text may be any text, also where the schema lists
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

from eos.option_names import did_you_mean
from eos.schema.avro_defaults import beyond_logical
from eos.schema.avro_text import AvroField, Node, below
from eos.schema.description import Description, Form, Primitive, Record
from eos.schema.spark_types import OF_PRIMITIVES

_SMALL = (ByteType, ShortType)
_IN_JSON: Mapping[str, tuple[type[DataType], ...]] = {
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

_TIMES: Mapping[tuple[str, str], tuple[type[DataType], ...]] = {
    ("int", "date"): (DateType,),
    ("int", "time-millis"): (*_SMALL, IntegerType),
    ("long", "time-micros"): (*_SMALL, IntegerType, LongType),
    ("long", "timestamp-millis"): (TimestampType,),
    ("long", "timestamp-micros"): (TimestampType,),
    ("long", "local-timestamp-millis"): (TimestampNTZType,),
    ("long", "local-timestamp-micros"): (TimestampNTZType,),
}
"""{(type, logical type): the types of Spark that are written as such by AVRO}; a time of day is a number in Spark."""

_UNSIGNED: Mapping[str, tuple[type[DataType], ...]] = {
    "uint32": (*_SMALL, IntegerType, LongType),
    "uint64": (*_SMALL, IntegerType, LongType),
}
"""{type of protobuf: the types of Spark that are written as such}, beside the decimals without a fraction."""

_PRIMITIVES: Mapping[str, tuple[type[DataType], ...]] = {
    "BYTES": (BinaryType,),
    "STRING": (StringType,),
    "BOOLEAN": (BooleanType,),
    "INT8": (ByteType,),
    "INT16": _SMALL,
    "INT32": (*_SMALL, IntegerType),
    "INT64": (*_SMALL, IntegerType, LongType),
    "FLOAT": (*_SMALL, FloatType),
    "DOUBLE": (*_SMALL, IntegerType, FloatType, DoubleType),
    "DATE": (TimestampType,),
    "TIME": (*_SMALL, IntegerType, LongType),
    "TIMESTAMP": (TimestampType,),
    "INSTANT": (TimestampType,),
    "LOCAL_DATE": (DateType,),
    "LOCAL_TIME": (*_SMALL, IntegerType, LongType),
    "LOCAL_DATE_TIME": (TimestampNTZType,),
}
"""{kind: the types of Spark that are written as such}."""

_TO_NUMBERS = {
    "date": "unix_date(…)",
    "timestamp-millis": "unix_millis(…)",
    "timestamp-micros": "unix_micros(…)",
}
"""{logical type: what makes its number of a date or a timestamp, which `to_json` writes as text}."""

_FROM_NUMBERS = {
    "date": "date_from_unix_date(…)",
    "timestamp-millis": "timestamp_millis(…)",
    "timestamp-micros": "timestamp_micros(…)",
}
"""{logical type: what makes a date or a timestamp of its number, as AVRO wants it}."""


def misfit(columns: DataType, node: Node, form: Form, path: str = "") -> str | None:
    """Return what doesn't fit, as a sentence; None where all does.

    Args: the type that is written; the schema; how its values are written; where it lies.
    """
    if node.kind == "record" and isinstance(columns, StructType):
        return _in_record(columns, node, form, path)
    if node.items is not None:
        if node.kind == "array" and isinstance(columns, ArrayType):
            return misfit(columns.elementType, node.items, form, f"{path}[]")
        if node.kind == "map" and isinstance(columns, MapType) and isinstance(columns.keyType, StringType):
            return misfit(columns.valueType, node.items, form, f"{path}[]")
    elif node.logical == "decimal":
        if isinstance(columns, DecimalType) and _holds(node, columns):
            return None
    elif isinstance(columns, _taken(node, form)) or (
        node.kind == "uint64" and isinstance(columns, DecimalType) and columns.scale == 0
    ):
        return None
    return f"field {path!r} is {columns.simpleString()}, and the schema has {_named(node)}{_hint(columns, node, form)}."


def value_misfit(value: DataType, known: Description, path: str = "value") -> str | None:
    """Return what doesn't fit of a column that is a whole value, as a sentence; None where all does.

    Args: the type that is written; what it is written by, which is not JSON; where it lies.
    """
    if isinstance(known, Record):
        return misfit(value, known.node, known.format, path)
    if isinstance(known, Primitive):
        if isinstance(value, _PRIMITIVES[known.kind]):
            return None
        meant = OF_PRIMITIVES[known.kind].simpleString()
        return f"column {path!r} is {value.simpleString()}, and {known.kind} is written from {meant}."
    if not isinstance(value, StructType) or sorted(value.fieldNames()) != ["key", "value"]:
        return f"column {path!r} is {value.simpleString()}, and a pair is written from a struct of key and value."
    parts = (("key", known.key), ("value", known.value))
    wrong = (value_misfit(value[name].dataType, part, below(path, name)) for name, part in parts)
    return next(filter(None, wrong), None)


def _taken(node: Node, form: Form) -> tuple[type[DataType], ...]:
    if form != "JSON":
        if node.logical:
            return _TIMES[node.kind, node.logical]
        if node.kind == "string":
            return (StringType,)
    return _UNSIGNED.get(node.kind) or _IN_JSON.get(node.kind, ())


def _in_record(columns: StructType, node: Node, form: Form, path: str) -> str | None:
    known = {field.name: field for field in node.fields}
    twice = [name for name in known if columns.fieldNames().count(name) > 1]
    if twice:
        return f"field {below(path, twice[0])!r} is there twice, and the schema has it once."
    for column in columns.fields:
        at = below(path, column.name)
        if column.name not in known:
            near = did_you_mean(column.name, known)
            return f"field {at!r} is {column.dataType.simpleString()}, and the schema has no such field.{near}"
        if wrong := misfit(column.dataType, known[column.name].node, form, at):
            return wrong
    for field in node.fields:
        if field.name not in columns.fieldNames() and (wrong := _without_a_column(field, form)):
            return f"field {below(path, field.name)!r} is missing, and {wrong}."
    return None


def _without_a_column(field: AvroField, form: Form) -> str | None:
    """Return why a field needs a column, None where it needs none."""
    if not field.has_default and not field.node.nullable:
        return f"the schema has {_named(field.node)}, neither null nor a default"
    if form == "AVRO" and (why := beyond_logical(field.node, field.default)):
        return f"its default, {field.default!r}, is no {field.node.logical or field.node.kind}: {why}"
    return None


def _holds(node: Node, columns: DecimalType) -> bool:
    return columns.scale <= node.scale and columns.precision - columns.scale <= node.precision - node.scale


def _named(node: Node) -> str:
    if node.logical == "decimal":
        return f"decimal({node.precision},{node.scale})"
    return f"{node.kind} ({node.logical})" if node.logical else node.kind


_OF_THE_OTHER_KIND: Mapping[tuple[type[DataType], str], str] = {
    (TimestampNTZType, "timestamp-millis"): "cast(… as timestamp_ltz)",
    (TimestampNTZType, "timestamp-micros"): "cast(… as timestamp_ltz)",
    (TimestampType, "local-timestamp-millis"): "cast(… as timestamp_ntz)",
    (TimestampType, "local-timestamp-micros"): "cast(… as timestamp_ntz)",
}
"""{(type of Spark, logical type): what makes one of the other}. The word timestamp alone is what the session says."""


def _hint(columns: DataType, node: Node, form: Form) -> str:
    timed = isinstance(columns, DateType | TimestampType | TimestampNTZType)
    if form == "JSON":
        return f". Write its number, by {_TO_NUMBERS[node.logical]}" if timed and node.logical in _TO_NUMBERS else ""
    made = _OF_THE_OTHER_KIND.get((type(columns), node.logical))
    if isinstance(columns, IntegerType | LongType):
        made = _FROM_NUMBERS.get(node.logical)
    return f". Make it one, by {made}" if made else ""
