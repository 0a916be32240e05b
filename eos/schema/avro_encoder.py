"""AVRO values, written column by column: no row becomes a Python object.

Avro writes a record as its fields one after the other, so a column of records is the join of its fields' columns. A
whole number is a zigzag varint, a text its size and its bytes, an optional value the place of its branch and the value,
an array one block: its size, its items and 0. Avro's own writer for Java makes the same of the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.keys import is_text, shown
from eos.pulsar.wire.varint import binary_array
from eos.schema.avro_defaults import beyond_logical, field_bytes, zigzag
from eos.schema.avro_text import DAYS, MILLIS, Node, below
from eos.schema.conversions import time_of_day
from eos.schema.description import Record
from eos.schema.errors import Wrong, naming_the_row
from eos.schema.map_keys import refuse_twice

BINARY = pa.large_binary()
"""Of each column of bytes here: an array can join the items of a whole batch."""

Numbers = npt.NDArray[Any]


class AvroEncoder:
    """Writes values by an AVRO schema; the columns have been found to fit it (`eos.schema.fit`)."""

    def __init__(self, record: Record) -> None:
        """Args: the schema. Raises InvalidInput for a default that is none of its type."""
        self._node = record.node
        self._defaults = _defaults(record.node, "")

    def encode(self, values: pa.Array) -> pa.Array:
        """Return the bytes of each value; a null stays null. Raises Unencodable."""
        return naming_the_row(self._encoded, values)

    def _encoded(self, values: pa.Array) -> pa.Array:
        if self._node.nullable or not values.null_count:
            return self._value(self._node, values, "")
        return _spread(self._value(self._node, values.drop_null(), ""), values)

    def _value(self, node: Node, column: pa.Array, path: str) -> pa.Array:
        present = column
        if column.null_count:
            if not node.nullable:
                raise Wrong(path, f"it is null, and the schema has {node.kind} without null")
            present = column.drop_null()
        if node.kind == "record":
            found = self._record(node, present, path)
        elif node.items is not None:
            found = self._items(node, node.items, present, path)
        else:
            found = _PLAIN[node.kind](node, present, path)
        if node.branch is not None:
            found = _joined(pa.scalar(zigzag(node.branch), BINARY), found)
        if not column.null_count:
            return found
        return _spread(found, column).fill_null(pa.scalar(zigzag(node.null_branch), BINARY))

    def _record(self, node: Node, column: pa.Array, path: str) -> pa.Array:
        parts = []
        for field in node.fields:
            at = below(path, field.name)
            place = column.type.get_field_index(field.name)
            if place < 0:
                parts.append(pa.scalar(self._defaults[at], BINARY))
            else:
                parts.append(self._value(field.node, column.field(place), at))
        return _joined(pa.repeat(pa.scalar(b"", BINARY), len(column)), *parts)

    def _items(self, node: Node, item: Node, column: pa.Array, path: str) -> pa.Array:
        offsets = np.asarray(column.offsets).astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        values = column.items if node.kind == "map" else column.values
        counts = np.diff(offsets)
        items = self._value(item, values.slice(first, last - first), f"{path}[]")
        if node.kind == "map":
            keys = column.keys.slice(first, last - first)
            items = _joined(_text(node, keys, f"{path}[]"), items)
            refuse_twice(keys, counts, path)
        ends = pc.if_else(pa.array(counts > 0), pa.scalar(b"\0", BINARY), pa.scalar(b"", BINARY))
        # The items of one array lie side by side: together they are its block.
        bytes_, places = _flat(items)
        block = binary_array(bytes_, places[offsets - first], BINARY)
        return _joined(_varints(counts), block, ends)


def _defaults(node: Node, path: str) -> dict[str, bytes]:
    """Return what stands for each field that columns may leave out. Raises InvalidInput.

    Columns that leave out a field whose default is beyond its logical type do not fit the schema (`eos.schema.fit`).
    """
    if node.items is not None:
        return _defaults(node.items, f"{path}[]")
    found: dict[str, bytes] = {}
    for field in node.fields:
        at = below(path, field.name)
        found |= _defaults(field.node, at)
        if (field.has_default or field.node.nullable) and beyond_logical(field.node, field.default) is None:
            found[at] = field_bytes(field.node, field.default, at)
    return found


def _varints(numbers: Numbers) -> pa.Array:
    """Return whole numbers as zigzag varints."""
    signed = numbers.astype(np.int64, copy=False)
    coded = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    sizes = np.ones(len(coded), dtype=np.int64)
    for group in range(1, 10):
        larger = coded >= np.uint64(1) << np.uint64(7 * group)
        if not larger.any():
            break
        sizes += larger
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    for group in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > group)
        bits = (coded[rows] >> np.uint64(7 * group)).astype(np.uint8) & 0x7F
        out[offsets[rows] + group] = np.where(sizes[rows] > group + 1, bits | 0x80, bits)
    return binary_array(out, offsets, BINARY)


def _fixed(rows: npt.NDArray[np.uint8]) -> pa.Array:
    """Return the rows of an array of bytes; shape (rows, bytes of each)."""
    count, size = rows.shape
    return binary_array(np.ascontiguousarray(rows).reshape(-1), np.arange(count + 1) * size, BINARY)


def _flat(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of a column without nulls, and where each row begins in them; shape (rows + 1,)."""
    _, places, data = column.buffers()
    if len(column) == 0:
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    offsets = np.frombuffer(places, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    whole = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    return whole, offsets


def _joined(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", BINARY))


def _spread(found: pa.Array, like: pa.Array) -> pa.Array:
    """Return the values at the places of those that are not null in another column."""
    valid = like.is_valid().to_numpy(zero_copy_only=False)
    return found.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def _boolean(node: Node, column: pa.Array, path: str) -> pa.Array:
    return _fixed(column.cast(pa.uint8()).to_numpy().reshape(-1, 1))


def _whole(node: Node, column: pa.Array, path: str) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        counts = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy()
        return _varints(counts // 1000 if node.logical in MILLIS else counts)
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    numbers = column.to_numpy()
    if node.logical in DAYS and (wrong := (numbers < 0) | (numbers >= DAYS[node.logical])).any():
        time_of_day(node, int(numbers[wrong][0]), path)  # raises Wrong
    return _varints(numbers)


def _broken(kind: str) -> Callable[[Node, pa.Array, str], pa.Array]:
    def encode(node: Node, column: pa.Array, path: str) -> pa.Array:
        numbers = column.to_numpy(zero_copy_only=False).astype(kind)
        return _fixed(numbers.view(np.uint8).reshape(-1, numbers.itemsize))

    return encode


def _text(node: Node, column: pa.Array, path: str) -> pa.Array:
    plain = column.cast(BINARY)
    if not is_text(plain):
        raise Wrong(path, "it is not valid UTF-8")
    return _sized(plain)


def _symbol(node: Node, column: pa.Array, path: str) -> pa.Array:
    places = pc.index_in(column, value_set=pa.array(node.symbols, column.type))
    if places.null_count:
        unknown = shown(column.filter(places.is_null()), 0)
        raise Wrong(path, f"'{unknown}' is none of the schema's symbols, {', '.join(node.symbols)}")
    return _varints(places.to_numpy())


def _bytes(node: Node, column: pa.Array, path: str) -> pa.Array:
    if node.logical != "decimal":
        return _sized(column.cast(BINARY))
    numbers, spare = _unscaled(node, column)
    kept = np.arange(numbers.shape[1]) >= spare[:, None]
    offsets = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    return _sized(binary_array(numbers[kept], offsets, BINARY))


def _of_size(node: Node, column: pa.Array, path: str) -> pa.Array:
    if node.logical != "decimal":
        plain = column.cast(BINARY)
        sizes = pc.binary_length(plain).to_numpy()
        if (wrong := sizes != node.size).any():
            raise Wrong(path, f"it has {sizes[wrong][0]} bytes, and the schema has fixed of {node.size}")
        return plain
    numbers, spare = _unscaled(node, column)
    lacking = node.size - numbers.shape[1]
    if lacking >= 0:
        sign = np.repeat(_sign(numbers), lacking, axis=1)
        return _fixed(np.concatenate((sign, numbers), axis=1))
    if (spare < -lacking).any():
        raise Wrong(path, f"the decimal needs more bytes than the schema's fixed of {node.size}")
    return _fixed(numbers[:, -lacking:])


def _sized(column: pa.Array) -> pa.Array:
    return _joined(_varints(pc.binary_length(column).to_numpy()), column)


def _unscaled(node: Node, column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return decimals as whole numbers, most significant byte first, and how many leading bytes say nothing.

    Shapes: (rows, 16) and (rows,).
    """
    scaled = column.cast(pa.decimal128(38, node.scale))
    data = np.frombuffer(scaled.buffers()[1], dtype=np.uint8) if len(scaled) else np.empty(0, dtype=np.uint8)
    numbers = data.reshape(-1, 16)[scaled.offset : scaled.offset + len(scaled), ::-1]
    idle = (numbers[:, :-1] == _sign(numbers)) & ((numbers[:, 1:] ^ _sign(numbers)) < 0x80)
    return numbers, np.cumprod(idle, axis=1).sum(axis=1)


def _sign(numbers: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.where(numbers[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)


_PLAIN: Mapping[str, Callable[[Node, pa.Array, str], pa.Array]] = {
    "boolean": _boolean,
    "int": _whole,
    "long": _whole,
    "float": _broken("<f4"),
    "double": _broken("<f8"),
    "string": _text,
    "enum": _symbol,
    "bytes": _bytes,
    "fixed": _of_size,
}
"""{type: what writes a column of it without nulls}."""
