"""JSON values that a parser has read, field by field over all rows.

`eos.schema.json_fields` checks one value after the other. Here the values of a field from all rows are looked at
together: Python's types in it, its nulls, its range. Where all of them are surely right they become an Arrow array at
once. Anything else raises `Unsure`: each value is checked then, and the error names the row and the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from eos.schema.avro_columns import structs
from eos.schema.avro_text import Node
from eos.schema.conversions import BITS, decimal, limits
from eos.schema.errors import Wrong
from eos.schema.json_objects import Objects
from eos.schema.vector_columns import Unsure

_Column = Callable[[list[Any]], pa.Array]
_Present = Callable[[list[Any], set[type]], pa.Array]

_KINDS: Mapping[str, frozenset[type]] = {
    "boolean": frozenset({bool}),
    "int": frozenset({int}),
    "long": frozenset({int}),
    "float": frozenset({int, Decimal, float}),
    "double": frozenset({int, Decimal, float}),
    "string": frozenset({str}),
    "enum": frozenset({str}),
    "bytes": frozenset({str}),
    "fixed": frozenset({str}),
}
"""{type: Python's types of its values}."""

_ROWS = 2_000
"""Rows at a time: their objects are still in the processor's cache when the last field is taken out of them."""


class JsonColumns:
    """Makes an Arrow array of JSON values.

    Attributes:
        objects: the parser.
    """

    def __init__(self, node: Node, target: pa.DataType, objects: Objects) -> None:
        """Args: the query's schema; the Arrow type; the parser. Raises Unsure where a type was written as another."""
        self.objects = objects
        self._read = _column(node, target, objects, nullable=True)

    def array(self, values: pa.Array) -> pa.Array:
        """Return the values. Args: the bytes, with nulls. Raises Unsure."""
        starts = range(0, max(len(values), 1), _ROWS)
        try:
            return pa.concat_arrays([self._read(self.objects.rows(values.slice(start, _ROWS))) for start in starts])
        except (pa.ArrowException, ValueError, OverflowError, TypeError, RecursionError, Wrong) as error:
            raise Unsure from error


def _column(node: Node, kind: pa.DataType, objects: Objects, *, nullable: bool) -> _Column:
    if node.written is not None:
        raise Unsure
    inner = _present(node, kind, objects)

    def read(values: list[Any]) -> pa.Array:
        kinds = set(map(type, values))
        if type(None) not in kinds:
            return inner(values, kinds)
        if not nullable:
            raise Unsure
        there = [value for value in values if value is not None]
        present = np.fromiter((value is not None for value in values), np.bool_, len(values))
        found = inner(there, kinds - {type(None)})
        return found.take(pa.array(np.cumsum(present) - 1, mask=~present))

    return read


def _present(node: Node, kind: pa.DataType, objects: Objects) -> _Present:
    if node.kind == "record":
        return _record(node, kind, objects)
    if node.items is not None:
        part = kind.value_type if node.kind == "array" else kind.item_type
        items = _column(node.items, part, objects, nullable=node.items.nullable)
        return _list(items, kind) if node.kind == "array" else _map(items, kind)
    if node.logical == "decimal":
        return _of(frozenset({int, Decimal}), lambda values: pa.array([decimal(node, one, "") for one in values], kind))
    if node.kind in BITS:
        return _of(_KINDS[node.kind], lambda values: _whole(values, *limits(node), kind))
    if node.kind in ("float", "double"):
        return _of(_KINDS[node.kind], lambda values: _real(values, kind))
    if node.kind == "enum":
        return _of(_KINDS["enum"], lambda values: _symbols(values, frozenset(node.symbols), kind))
    return _of(_KINDS[node.kind], lambda values: pa.array(values, kind))


def _of(allowed: frozenset[type], make: _Column) -> _Present:
    def read(values: list[Any], kinds: set[type]) -> pa.Array:
        if not kinds <= allowed:
            raise Unsure
        return make(values)

    return read


def _record(node: Node, kind: pa.DataType, objects: Objects) -> _Present:
    fields = objects.fields(node)
    columns = [
        _column(field.node, part.type, objects, nullable=field.node.nullable)
        for field, part in zip(node.fields, kind, strict=True)
    ]

    def read(rows: list[Any], kinds: set[type]) -> pa.Array:
        if not all(issubclass(one, objects.record) for one in kinds):
            raise Unsure
        parts = [column(values) for column, values in zip(columns, fields(rows), strict=True)]
        return structs(parts, list(kind), pa.array(np.zeros(len(rows), np.bool_)))

    return read


def _offsets(values: list[Any]) -> pa.Array:
    sizes = np.fromiter(map(len, values), np.int32, len(values))
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))


def _list(items: _Column, kind: pa.DataType) -> _Present:
    def read(values: list[Any], kinds: set[type]) -> pa.Array:
        if not kinds <= {list}:
            raise Unsure
        return pa.ListArray.from_arrays(_offsets(values), items(list(chain.from_iterable(values))), type=kind)

    return read


def _map(items: _Column, kind: pa.DataType) -> _Present:
    def read(values: list[Any], kinds: set[type]) -> pa.Array:
        if not kinds <= {dict}:
            raise Unsure
        keys = pa.array(list(chain.from_iterable(values)), kind.key_type)
        inner = items(list(chain.from_iterable(map(dict.values, values))))
        return pa.MapArray.from_arrays(_offsets(values), keys, inner, type=kind)

    return read


def _whole(values: list[Any], least: int, most: int, factor: int, kind: pa.DataType) -> pa.Array:
    width = np.int32 if kind.bit_width == 32 else np.int64
    numbers = np.fromiter(values, np.int64, len(values))
    if ((numbers < least) | (numbers > most)).any():
        raise Unsure
    found = pa.array((numbers * factor).astype(width))
    return found if found.type.equals(kind) else found.view(kind)


def _real(values: list[Any], kind: pa.DataType) -> pa.Array:
    numbers = np.fromiter(values, np.float64, len(values))
    with np.errstate(over="ignore"):
        numbers = numbers.astype(kind.to_pandas_dtype(), copy=False)
    if not np.isfinite(numbers).all():
        raise Unsure
    return pa.array(numbers)


def _symbols(values: list[Any], known: frozenset[str], kind: pa.DataType) -> pa.Array:
    if not known.issuperset(values):
        raise Unsure
    return pa.array(values, kind)
