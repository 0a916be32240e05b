"""JSON values: by Arrow's reader where it answers as Python's would, else by a parser of single values.

Arrow reads a whole column at once, and says no more than that something is wrong. So whatever it does not take, and
whatever it gives null where a field may not be null or has a default, is read again: by msgspec's parser where that is
installed, else by Python's, and checked column by column. Where that is in doubt, too, each value is looked at by
itself: this has the last word, and names the row and the field. These are refused there: a field of another type, a
number that its type can't hold, and a missing field that has no default and may not be null. Fields that the schema
does not know are left out.

Every value is put into a list of its own before Arrow sees it: two values in one message, or none, are then no list of
one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from eos.schema.avro_text import DAYS, Node
from eos.schema.conversions import as_written, check
from eos.schema.errors import Undecodable, Wrong
from eos.schema.garbage import no_collection
from eos.schema.json_columns import JsonColumns
from eos.schema.json_fields import field_value
from eos.schema.json_objects import Dictionaries, Structs, parsed
from eos.schema.primitives import joined
from eos.schema.vector_columns import Unsure

_COLUMN = "v"
_UNITS = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
"""{logical type: what its numbers count}; a time of day stays a number."""

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.string(),
    "fixed": pa.string(),
}


class JsonDecoder:
    """Decodes the JSON values that were written with one schema as another one has them."""

    def __init__(self, writer: Node, reader: Node, target: pa.DataType) -> None:
        """Args: the schema of the messages; that of the query; the Arrow type of the values.

        Raises InvalidInput when the two do not go together.
        """
        check("JSON", writer, reader)
        node = self._node = as_written(writer, reader)
        self._target = target
        self._by_arrow = _at_once(node)
        self._columns: list[JsonColumns] = []
        for objects in (lambda: Structs(node), Dictionaries):
            with suppress(Unsure):
                self._columns.append(JsonColumns(node, target, objects()))
        if self._by_arrow:
            self._read = pa.json.ParseOptions(
                explicit_schema=pa.schema([(_COLUMN, pa.list_(_type_of(node, counted=False)))]),
                newlines_in_values=True,
                unexpected_field_behavior="ignore",
            )
            self._counted = _type_of(node, counted=True)

    def decode(self, values: pa.Array) -> pa.Array:
        """Return the values. Args: the bytes, with nulls. Raises Undecodable."""
        if self._by_arrow and len(values) > values.null_count:
            found = self._whole(values.drop_null())
            if found is not None:
                return _spread(found, values)
        return self._one_by_one(values)

    def _whole(self, values: pa.Array) -> pa.Array | None:
        """Return the values as Arrow reads them; None where each must be looked at."""
        lines = joined(pc.binary_join_element_wise(b'{"v":[', values, b"]}\n", b""))
        size = pa.json.ReadOptions(use_threads=False, block_size=len(lines))  # a value never ends after its block
        try:
            table = pa.json.read_json(pa.BufferReader(lines), read_options=size, parse_options=self._read)
            lists = table.column(_COLUMN).combine_chunks()
            if len(lists) != len(values) or pc.min_max(pc.list_value_length(lists)).as_py() != {"min": 1, "max": 1}:
                return None
            read = lists.flatten()
            if not _settled(self._node, read, top=True):
                return None
            found = read.cast(self._counted).cast(self._target)
            found.validate(full=True)  # Arrow's reader takes text that is not UTF-8
            return found
        except pa.ArrowInvalid:
            return None

    def _one_by_one(self, values: pa.Array) -> pa.Array:
        """Return the values as a parser reads each; what it has read is checked column by column, if it can be.

        Parsers make no cycles, so that a collection of garbage finds nothing, however often it looks.
        """
        with no_collection():
            for columns in self._columns:
                try:
                    return columns.array(values)
                except Unsure:
                    pass  # the next parser, or each value by itself, says what is wrong, or that all is well
            return self._checked(values)

    def _checked(self, values: pa.Array) -> pa.Array:
        rows: list[Any] = []
        for row, value in enumerate(values.to_pylist()):
            if value is None:
                rows.append(None)
                continue
            try:
                found = parsed(value)
                rows.append(None if found is None else field_value(self._node, found))
            except Wrong as wrong:
                raise Undecodable(row, wrong.path, wrong.why) from None
            except (ValueError, RecursionError) as error:
                raise Undecodable(row, "", f"it is not JSON: {error}") from error
        return pa.array(rows, self._target)


def _at_once(node: Node) -> bool:
    """Return whether Arrow's reader knows all types of a schema. Its maps are lists, and its decimals texts."""
    if node.kind == "record":
        return bool(node.fields) and all(not field.given and _at_once(field.node) for field in node.fields)
    if node.kind == "array":
        assert node.items is not None
        return _at_once(node.items)
    return node.kind != "map" and node.logical != "decimal"


def _type_of(node: Node, *, counted: bool) -> pa.DataType:
    """Return Arrow's type: of the numbers in the JSON, or of what they count."""
    if node.kind == "record":
        return pa.struct([(field.name, _type_of(field.node, counted=counted)) for field in node.fields])
    if node.items is not None:
        return pa.list_(_type_of(node.items, counted=counted))
    theirs = node.written or node
    if counted and theirs.logical in _UNITS:
        return _UNITS[theirs.logical]
    return _PLAIN[theirs.kind]


def _settled(node: Node, found: pa.Array, *, top: bool = False, default: bool = False) -> bool:
    """Return whether each null is surely a null of the value, and each number and symbol one that its type holds."""
    if found.null_count and not top and (default or not node.nullable):
        return False
    if node.kind == "record":
        fields = zip(node.fields, found.drop_null().flatten(), strict=True)
        return all(
            _settled(field.node, part, default=field.has_default and field.default is not None)
            for field, part in fields
        )
    if node.items is not None:
        return _settled(node.items, found.flatten())
    if node.logical in DAYS:
        return not pc.or_(pc.less(found, 0), pc.greater_equal(found, DAYS[node.logical])).true_count
    if node.kind == "enum":
        return not pc.is_in(found.drop_null(), pa.array(node.symbols, pa.string())).false_count
    return not pa.types.is_floating(found.type) or not pc.is_inf(found).true_count


def _spread(found: pa.Array, values: pa.Array) -> pa.Array:
    if values.null_count == 0:
        return found
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return found.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
