"""Numbers and enums of protobuf, read by numpy from many messages at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from eos.pulsar.wire.fields import Places
from eos.schema.arrow_numbers import Numbers, decimals, plain, symbols
from eos.schema.vector_columns import Cursor, NumberColumn, Unsure

F = FieldDescriptor
VARINT, EIGHT, SIZED, FOUR = 0, 1, 2, 5
"""Wire types: a number in groups of seven bits, eight bytes, a size and so many bytes, four bytes."""


def number_column(kind: int, to: pa.DataType) -> tuple[int, NumberColumn]:
    """Return the wire type of a number, and an empty column. Args: protobuf's type; the Arrow type."""
    wire, one, dtype = _NUMBERS[kind]
    return wire, NumberColumn(one, dtype, decimals(to, to) if pa.types.is_decimal(to) else plain(to))


def enum_column(names: Mapping[int, str]) -> NumberColumn:
    """Return an empty column of an enum. Args: the name of each number that may come."""
    numbers = np.array(sorted(names), np.int64)

    def one(cursor: Cursor) -> Numbers:
        return _places(cursor.varint().view(np.int64))

    def _places(given: Places) -> Numbers:
        found = np.searchsorted(numbers, given)
        if (found >= len(numbers)).any() or (numbers[found] != given).any():
            raise Unsure
        return found

    zero = int(np.searchsorted(numbers, 0)) if 0 in names else None
    return NumberColumn(one, np.int64, symbols([names[int(number)] for number in numbers]), zero)


def _within(least: int, most: int, dtype: npt.DTypeLike, *, zigzag: bool = False) -> Callable[[Cursor], Numbers]:
    def one(cursor: Cursor) -> Numbers:
        found = cursor.zigzag() if zigzag else cursor.varint().view(np.int64)
        if (found < least).any() or (found > most).any():
            raise Unsure
        return found.astype(dtype, copy=False)

    return one


def _wide(wire: int, dtype: npt.DTypeLike, to: npt.DTypeLike) -> Callable[[Cursor], Numbers]:
    def one(cursor: Cursor) -> Numbers:
        head = cursor.data.eight[cursor.at]
        cursor.move(cursor.at + (8 if wire == EIGHT else 4))
        return (head if wire == EIGHT else head.astype(np.uint32)).view(dtype).astype(to, copy=False)

    return one


def _unsigned(read: Callable[[Cursor], Numbers]) -> Callable[[Cursor], Numbers]:
    """Return what reads numbers without a sign, as decimals of 16 bytes have them."""

    def one(cursor: Cursor) -> Numbers:
        low = read(cursor)
        return np.stack((low, np.zeros(len(low), np.uint64)), axis=1)

    return one


_32, _64 = 2**31, 2**63
_PAIR = np.dtype((np.uint64, 2))
_NUMBERS: Mapping[int, tuple[int, Callable[[Cursor], Numbers], npt.DTypeLike]] = {
    F.TYPE_BOOL: (VARINT, _within(0, 1, np.bool_), np.bool_),
    F.TYPE_INT32: (VARINT, _within(-_32, _32 - 1, np.int32), np.int32),
    F.TYPE_SINT32: (VARINT, _within(-_32, _32 - 1, np.int32, zigzag=True), np.int32),
    F.TYPE_INT64: (VARINT, _within(-_64, _64 - 1, np.int64), np.int64),
    F.TYPE_SINT64: (VARINT, _within(-_64, _64 - 1, np.int64, zigzag=True), np.int64),
    F.TYPE_UINT32: (VARINT, _within(0, 2**32 - 1, np.int64), np.int64),
    F.TYPE_UINT64: (VARINT, _unsigned(Cursor.varint), _PAIR),
    F.TYPE_SFIXED32: (FOUR, _wide(FOUR, np.int32, np.int32), np.int32),
    F.TYPE_FIXED32: (FOUR, _wide(FOUR, np.uint32, np.int64), np.int64),
    F.TYPE_FLOAT: (FOUR, _wide(FOUR, np.float32, np.float32), np.float32),
    F.TYPE_SFIXED64: (EIGHT, _wide(EIGHT, np.int64, np.int64), np.int64),
    F.TYPE_FIXED64: (EIGHT, _unsigned(_wide(EIGHT, np.uint64, np.uint64)), _PAIR),
    F.TYPE_DOUBLE: (EIGHT, _wide(EIGHT, np.float64, np.float64), np.float64),
}
"""{type: its wire type, what reads its values, and numpy's type of these}."""
