"""AVRO values, by fastavro: each becomes a Python object on its way, as there is no other reader that resolves schemas.

A message is read by the schema that it was written with, and resolved to the reader's as Avro has it: fields by name,
defaults for what is missing, wider numbers. Two things Avro leaves open are settled here. A record's own name does not
matter, since registries let it change. A logical type does: Avro would take a plain number for a time, so such a pair
of schemas is refused.
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException

from eos.errors import InvalidInput
from eos.schema.avro_defaults import field_value
from eos.schema.avro_text import Node, below
from eos.schema.description import Record
from eos.schema.errors import Undecodable

_AS_WRITTEN = ("uuid", "time-millis", "time-micros")
"""Logical types that Spark has as a text or a number."""

_COUNTED = ("date", "timestamp-micros", "local-timestamp-micros")
"""Those whose numbers Arrow takes as they are: Python's objects end with the year 9999, and Spark's types don't."""


class AvroDecoder:
    """Decodes the values that were written with one schema as another one has them."""

    def __init__(self, writer: Record, reader: Record, target: pa.DataType) -> None:
        """Args: the schema of the messages; that of the query; the Arrow type of the values.

        Raises InvalidInput when the two do not go together.
        """
        _check_meaning(writer.node, reader.node, "")
        theirs, ours = _prepared(writer.text), _prepared(reader.text)
        try:
            self._writer, self._reader = fastavro.parse_schema(_renamed(theirs, ours)), fastavro.parse_schema(ours)
            _give_values(self._reader, reader.node, "")
        except (SchemaParseException, ValueError) as error:
            raise InvalidInput(f"fastavro does not take the schema {writer}: {error}") from error
        self._target = target

    def decode(self, values: pa.Array) -> pa.Array:
        """Return the values. Args: the bytes, with nulls. Raises Undecodable."""
        read, writer, reader = fastavro.schemaless_reader, self._writer, self._reader
        rows: list[Any] = []
        for row, value in enumerate(values.to_pylist()):
            if value is None:
                rows.append(None)
                continue
            source = io.BytesIO(value)
            try:
                rows.append(read(source, writer, reader))
            except Exception as error:  # whatever bytes make of it: fastavro raises many kinds
                raise Undecodable(row, "", f"it can't be read as AVRO: {error!r}") from error
            if source.tell() != len(value):
                raise Undecodable(row, "", f"{len(value) - source.tell()} bytes are left behind its end")
        return pa.array(rows, self._target)


def _prepared(text: bytes) -> Any:
    return _without_objects(json.loads(text))


def _renamed(writer: Any, reader: Any) -> Any:
    """Return the writer's schema with the reader's name, in its own namespace: names inside lean on that."""
    if not (isinstance(writer, dict) and isinstance(reader, dict) and "name" in writer and "name" in reader):
        return writer
    before, _, _ = writer["name"].rpartition(".")
    return writer | {"name": reader["name"].rpartition(".")[2], "namespace": before or writer.get("namespace", "")}


def _give_values(schema: Any, node: Node, path: str) -> None:
    """Put values for the defaults of a parsed schema: fastavro gives them as JSON has them. Raises InvalidInput."""
    if isinstance(schema, list):
        for branch in schema:
            _give_values(branch, node, path)
    elif isinstance(schema, dict) and isinstance(schema["type"], list | dict):
        _give_values(schema["type"], node, path)
    elif isinstance(schema, dict) and node.items is not None:
        _give_values(schema["items" if node.kind == "array" else "values"], node.items, f"{path}[]")
    elif isinstance(schema, dict) and schema["type"] == "record":
        for given, field in zip(schema["fields"], node.fields, strict=True):
            at = below(path, field.name)
            _give_values(given["type"], field.node, at)
            if "default" in given:
                given["default"] = field_value(field.node, given["default"], at)


def _without_objects(schema: Any) -> Any:
    """Return the schema with what Spark or Arrow takes as a text or a number as that, not as an object of Python."""
    if isinstance(schema, list):
        return [_without_objects(branch) for branch in schema]
    if isinstance(schema, dict):
        plain = (*_AS_WRITTEN, *_COUNTED)
        left = {key: inside for key, inside in schema.items() if key != "logicalType" or inside not in plain}
        nested = ("type", "fields", "items", "values")
        return {key: _without_objects(inside) if key in nested else inside for key, inside in left.items()}
    return schema


def _check_meaning(writer: Node, reader: Node, path: str) -> None:
    """Raise InvalidInput for a number that is a time, or a decimal, on one side alone."""
    if _family(writer) != _family(reader):
        raise InvalidInput(
            f"field {path!r} was written as {writer.logical or writer.kind}, and is read as "
            f"{reader.logical or reader.kind}: the numbers do not mean the same"
        )
    if writer.items is not None and reader.items is not None:
        _check_meaning(writer.items, reader.items, f"{path}[]")
    read = {field.name: field.node for field in reader.fields}
    for field in writer.fields:
        if field.name in read:
            _check_meaning(field.node, read[field.name], below(path, field.name))


def _family(node: Node) -> tuple[str, int, int]:
    if node.logical == "decimal":
        return node.logical, node.precision, node.scale
    if node.logical in _AS_WRITTEN:
        return node.logical, 0, 0
    return node.logical.removesuffix("-millis").removesuffix("-micros"), 0, 0
