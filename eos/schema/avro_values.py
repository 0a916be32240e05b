"""AVRO values, read by the schema that they were written with, and taken over as the query has them.

Fields are known by their names, and aliases; what the messages lack takes the query's default. Which types go together
is in `eos.schema.conversions`. Each field's values are collected in a list of its own, and become one Arrow array.

Bytes are believed in nothing: a place in an enum or a union that there is not, a negative size, a number with more bits
than its type and a list longer than its message are errors that name the field. A library that reads places as Python
does takes -1 for the last symbol.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from eos.errors import InvalidInput
from eos.pulsar.wire.spans import Payloads, as_column
from eos.schema import vector_columns
from eos.schema.avro_columns import Column, Items, Leaf, One, Pairs, Struct, Union, sized, varint
from eos.schema.avro_defaults import field_value
from eos.schema.avro_text import DAYS, MILLIS, Node, below
from eos.schema.avro_vector_decoder import FEWEST, vector_column
from eos.schema.conversions import check, converted, decimal, from_millis, text, time_of_day
from eos.schema.description import Record
from eos.schema.errors import Undecodable, Wrong
from eos.schema.field_names import matched_by_message
from eos.schema.vector_columns import Unsure

_EXACT = Context(prec=100)
_DECIMAL_BYTES = 64  # 38 digits take 16; some writers put zeros before them
_REALS = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


class AvroDecoder:
    """Decodes the values that were written with one schema as another one has them."""

    def __init__(self, writer: Record, reader: Record, target: pa.DataType) -> None:
        """Args: the schema of the messages; that of the query; the Arrow type of the values.

        Raises InvalidInput when the two do not go together.
        """
        check("AVRO", writer.node, reader.node)
        self._writer, self._reader, self._target = writer.node, reader.node, target
        self._column()  # refuses a default that is none

    def decode(self, values: pa.Array | Payloads) -> pa.Array:
        """Return the values. Args: the bytes, with nulls. Raises Undecodable."""
        if len(values) >= FEWEST:
            try:
                return vector_columns.decode(values, vector_column(self._writer, self._reader, self._target))
            except Unsure:
                pass  # each value is looked at: that says what is wrong, or that all is well
        return self.one_by_one(as_column(values))

    def one_by_one(self, values: pa.Array) -> pa.Array:
        """Return the values, as `decode` does; without numpy."""
        column = self._column()
        read, absent = column.read, column.absent
        for row, value in enumerate(values.to_pylist()):
            if value is None:
                absent()
                continue
            try:
                end = read(value, 0)
            except Wrong as wrong:
                raise Undecodable(row, wrong.path, wrong.why) from None
            except (IndexError, struct.error):
                raise Undecodable(row, "", "it can't be read as AVRO: it ends within a field") from None
            if end != len(value):
                raise Undecodable(row, "", f"{len(value) - end} bytes are left behind its end")
        return column.taken()

    def _column(self) -> Column:
        return _column(self._writer, self._reader, self._target, "")


def _column(writer: Node, reader: Node, target: pa.DataType | None, path: str) -> Column:
    """Return an empty column for the values of one type.

    Args: the two schemas; the Arrow type, None for what the query leaves out; where it lies.
    """
    inner = _inner(writer, reader, target, path)
    if writer.branch is None:
        return inner
    reads: dict[int, Callable[[bytes, int], int]] = {writer.branch: inner.read}
    if writer.narrow is not None and isinstance(inner, Leaf):
        place, kind = writer.narrow
        reads[place] = inner.reading(_reading(Node(kind), reader, path))
    return Union(inner, reads, writer.null_branch if writer.nullable else None, reader.nullable, path)


def _inner(writer: Node, reader: Node, target: pa.DataType | None, path: str) -> Column:
    if writer.kind == "record":
        return _struct(writer, reader, target, path)
    if writer.items is None or reader.items is None:
        return Leaf(_reading(writer, reader, path), target)
    if writer.kind == "map":
        return Pairs(_column(writer.items, reader.items, target and target.item_type, f"{path}[]"), target, path)
    if not _has_bytes(writer.items):
        raise InvalidInput(
            f"field {path!r} is an array of items that have no bytes, so nothing bounds their number. Read the topic "
            "as bytes, without valueFormat"
        )
    return Items(_column(writer.items, reader.items, target and target.value_type, f"{path}[]"), target, path)


def _struct(writer: Node, reader: Node, target: pa.DataType | None, path: str) -> Column:
    ours, lacking = matched_by_message(writer.fields, reader.fields)
    defaults = {field.name: field_value(field.node, field.default, below(path, field.name)) for field in lacking}
    given: list[tuple[str | None, Column]] = []
    for theirs in writer.fields:
        at = below(path, theirs.name)
        if theirs.name in ours:
            field = ours[theirs.name]
            kind = target and target.field(field.name).type
            given.append((field.name, _column(theirs.node, field.node, kind, at)))
        else:
            given.append((None, _column(theirs.node, theirs.node, None, at)))
    return Struct(given, defaults, target)


def _has_bytes(node: Node) -> bool:
    """Return whether each value of a type has at least one byte."""
    if node.branch is not None:
        return True
    if node.kind == "record":
        return any(_has_bytes(field.node) for field in node.fields)
    return node.kind != "fixed" or node.size > 0


def _reading(writer: Node, reader: Node, path: str) -> One:
    """Return what reads a value without parts, as Arrow takes it."""
    one = _reading_as_written(writer, path)
    if writer.logical == "decimal":
        return lambda data, at: _decimal(one, writer, reader, data, at, path)
    if (writer.kind, writer.logical) == (reader.kind, reader.logical) and writer.symbols == reader.symbols:
        return one

    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, at = one(data, at)
        return converted(writer, reader, value, path), at

    return read


def _decimal(one: One, writer: Node, reader: Node, data: bytes, at: int, path: str) -> tuple[Any, int]:
    raw, at = one(data, at)
    if len(raw) > _DECIMAL_BYTES:
        raise Wrong(path, f"a number of {len(raw)} bytes, which is beyond decimal({writer.precision}, {writer.scale})")
    given = Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-writer.scale, _EXACT)
    return decimal(reader, decimal(writer, given, path), path), at


def _reading_as_written(writer: Node, path: str) -> One:
    if writer.kind in _REALS:
        layout = _REALS[writer.kind]
        return lambda data, at: (layout.unpack_from(data, at)[0], at + layout.size)
    if writer.kind == "fixed":
        return lambda data, at: _fixed(data, at, writer.size, path)
    if writer.kind == "string":
        return lambda data, at: _string(data, at, path)
    if writer.kind == "bytes":
        return lambda data, at: sized(data, at, path)
    if writer.kind == "boolean":
        return lambda data, at: (_boolean(data[at], path), at + 1)
    if writer.kind == "enum":
        return lambda data, at: _symbol(data, at, writer.symbols, path)
    if writer.logical in DAYS:
        return lambda data, at: _time_of_day(data, at, writer, path)
    if writer.kind == "int":
        return lambda data, at: _int(data, at, path)
    if writer.logical in MILLIS:
        return lambda data, at: _millis(data, at, path)
    return lambda data, at: varint(data, at, path)


def _fixed(data: bytes, at: int, size: int, path: str) -> tuple[bytes, int]:
    if at + size > len(data):
        raise Wrong(path, f"it has {size} bytes by its type, and {len(data) - at} are left of the value")
    return data[at : at + size], at + size


def _string(data: bytes, at: int, path: str) -> tuple[str, int]:
    raw, at = sized(data, at, path)
    return text(raw, path), at


def _boolean(byte: int, path: str) -> bool:
    if byte > 1:
        raise Wrong(path, f"the byte {byte}, where a boolean is 0 or 1")
    return byte == 1


def _symbol(data: bytes, at: int, symbols: tuple[str, ...], path: str) -> tuple[str, int]:
    place, at = varint(data, at, path)
    if not 0 <= place < len(symbols):
        raise Wrong(path, f"it names symbol {place} of its enum, which has {len(symbols)}")
    return symbols[place], at


def _int(data: bytes, at: int, path: str) -> tuple[int, int]:
    number, at = varint(data, at, path)
    if not -(2**31) <= number < 2**31:
        raise Wrong(path, f"{number}, which is beyond int")
    return number, at


def _time_of_day(data: bytes, at: int, writer: Node, path: str) -> tuple[int, int]:
    number, at = varint(data, at, path)
    return time_of_day(writer, number, path), at


def _millis(data: bytes, at: int, path: str) -> tuple[int, int]:
    number, at = varint(data, at, path)
    return from_millis(number, path), at
