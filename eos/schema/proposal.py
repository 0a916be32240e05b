"""A schema for columns: a new one, or the newest of a topic with the fields that it lacks.

Each field that is new may be null, and is so by default: so readers of the older schema and of the newer one read what
the other's writers wrote, and a topic takes the new version by any of Pulsar's compatibility strategies that takes one
at all. Types that are there already never change here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

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

from eos.errors import InvalidInput
from eos.schema.avro_text import below
from eos.schema.description import Form

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FULL_NAME = re.compile(rf"{_NAME.pattern}(\.{_NAME.pattern})*")
"""Of a record, with or without a namespace."""
NO_NAMES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
"""Avro's own types, whose names no record has."""

_PLAIN: Mapping[type[DataType], Any] = {
    BooleanType: "boolean",
    ByteType: "int",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
}
_TIMES: Mapping[type[DataType], Any] = {
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
"""{type of Spark: what AVRO writes it as}; in JSON a date or a timestamp is a text."""


def new_schema(columns: StructType, form: Form, name: str) -> bytes:
    """Return the Avro text of columns. Args: the columns; how they are written; the record's name, as `FULL_NAME`.

    Raises InvalidInput, naming the column, for a type or a name that Avro has no place for.
    """
    return _text(_record(columns, form, name, ""))


def extended(newest: bytes, columns: StructType, form: Form) -> bytes:
    """Return a schema's Avro text with a field for each column that it has none for, those of structs included.

    Args: the text; the columns; how they are written. Raises InvalidInput like `new_schema`.
    """
    schema = json.loads(newest)
    branches = schema if isinstance(schema, list) else [schema]
    named = next((branch for branch in branches if isinstance(branch, dict)), {})
    return _text(_with_fields(schema, columns, form, str(named.get("name", "Row")), ""))


def _text(schema: Any) -> bytes:
    return json.dumps(schema, ensure_ascii=False).encode()


def _record(columns: StructType, form: Form, name: str, path: str) -> dict[str, Any]:
    fields = [_field(column, form, name, path) for column in columns.fields]
    return {"type": "record", "name": name, "fields": fields}


def _field(column: StructField, form: Form, record: str, path: str) -> dict[str, Any]:
    at = below(path, column.name)
    if not _NAME.fullmatch(column.name):
        raise InvalidInput(
            f"Column {at!r} can't be a field of an Avro schema. A name there has letters of ASCII, digits and "
            "underscores alone, and begins with no digit. Rename it."
        )
    kind = _type(column.dataType, form, f"{record}.{column.name}", at)
    return {"name": column.name, "type": ["null", kind], "default": None}


def _type(kind: DataType, form: Form, name: str, path: str) -> Any:
    """Return Avro's type. Args: Spark's; how it is written; a full name for a record in it; where it lies."""
    if isinstance(kind, StructType):
        return _record(kind, form, name, path)
    if isinstance(kind, ArrayType):
        item = _type(kind.elementType, form, name, f"{path}[]")
        return {"type": "array", "items": ["null", item] if kind.containsNull else item}
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        value = _type(kind.valueType, form, name, f"{path}[]")
        return {"type": "map", "values": ["null", value] if kind.valueContainsNull else value}
    if isinstance(kind, DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if type(kind) in _TIMES:
        return _TIMES[type(kind)] if form == "AVRO" else "string"
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)]
    raise InvalidInput(
        f"Column {path!r} is {kind.simpleString()}, which no Avro schema has. Cast it, declare another type, or leave "
        "it out."
    )


def _with_fields(schema: Any, kind: DataType, form: Form, name: str, path: str) -> Any:
    if isinstance(schema, list):
        return [_with_fields(branch, kind, form, name, path) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    inner = schema["type"]
    if isinstance(inner, list | dict):
        return schema | {"type": _with_fields(inner, kind, form, name, path)}
    if inner == "array" and isinstance(kind, ArrayType):
        return schema | {"items": _with_fields(schema["items"], kind.elementType, form, name, f"{path}[]")}
    if inner == "map" and isinstance(kind, MapType):
        return schema | {"values": _with_fields(schema["values"], kind.valueType, form, name, f"{path}[]")}
    if inner != "record" or not isinstance(kind, StructType):
        return schema
    columns = {column.name: column for column in kind.fields}
    fields = []
    for field in schema["fields"]:
        column = columns.pop(field["name"], None)
        if column is not None:
            at = below(path, column.name)
            inside = _with_fields(field["type"], column.dataType, form, f"{name}.{column.name}", at)
            field = field | {"type": inside}
        fields.append(field)
    return schema | {"fields": [*fields, *(_field(column, form, name, path) for column in columns.values())]}
