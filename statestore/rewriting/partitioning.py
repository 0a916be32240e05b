"""Which partition a row of state lies in: Spark's Murmur3 of its columns, modulo the number (HashPartitioning).

A key is an UnsafeRow: a bit for each column that is null, in whole words; eight bytes for each column; then what is
longer, whose eight bytes hold its offset and its length. Columns that are null don't count (Murmur3Hash).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from statestore.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SEED = 42
_MASK = 0xFFFFFFFF
_LONG_DECIMAL = 18  # digits that fit into eight bytes

Hash = Callable[[bytes, int, int], int]
"""Of a row, the place of a column's eight bytes in it, and the hash so far."""


def partition_of(schema: StructType, partitions: int) -> Callable[[bytes], int]:
    """Return what tells the partition of a key.

    Args:
        schema: of the key; state is partitioned by all of it.

    Raises:
        InvalidInput: a column has a type whose hash is not known here.
    """
    hashed = _row(schema, "key")

    def place(key: bytes) -> int:
        value = hashed(key, _SEED)
        return (value - (1 << 32) if value >> 31 else value) % partitions

    return place


def _row(schema: StructType, name: str) -> Callable[[bytes, int], int]:
    columns = [_column(field.dataType, f"{name}.{field.name}") for field in schema.fields]
    words = (len(columns) + 63) // 64 * 8

    def hashed(row: bytes, seed: int) -> int:
        for index, column in enumerate(columns):
            if not row[index >> 3] >> (index & 7) & 1:
                seed = column(row, words + 8 * index, seed)
        return seed

    return hashed


def _column(kind: Any, name: str) -> Hash:
    from pyspark.sql import types

    if isinstance(kind, types.BooleanType):
        return lambda row, at, seed: hash_int(row[at], seed)
    if isinstance(kind, types.ByteType):
        return lambda row, at, seed: hash_int(struct.unpack_from("<b", row, at)[0], seed)
    if isinstance(kind, types.ShortType):
        return lambda row, at, seed: hash_int(struct.unpack_from("<h", row, at)[0], seed)
    if isinstance(kind, (types.IntegerType, types.DateType, types.YearMonthIntervalType)):
        return lambda row, at, seed: hash_int(struct.unpack_from("<i", row, at)[0], seed)
    if isinstance(kind, (types.LongType, types.TimestampType, types.TimestampNTZType, types.DayTimeIntervalType)):
        return lambda row, at, seed: hash_long(struct.unpack_from("<q", row, at)[0], seed)
    if isinstance(kind, types.DecimalType) and kind.precision <= _LONG_DECIMAL:
        return lambda row, at, seed: hash_long(struct.unpack_from("<q", row, at)[0], seed)
    plain = isinstance(kind, types.StringType) and kind.isUTF8BinaryCollation()
    if plain or isinstance(kind, (types.BinaryType, types.DecimalType)):
        return lambda row, at, seed: hash_bytes(_long_value(row, at), seed)
    if isinstance(kind, types.StructType):
        inner = _row(kind, name)
        return lambda row, at, seed: inner(_long_value(row, at), seed)
    raise InvalidInput(
        f"{name} is of the type {kind.simpleString()}: state with the HDFSBackedStateStoreProvider is rescaled where "
        "keys are numbers, texts, binaries, dates, times, booleans, decimals, or structs of these. Keys of floats and "
        "collections need the RocksDBStateStoreProvider"
    )


def _long_value(row: bytes, at: int) -> bytes:
    (where,) = struct.unpack_from("<Q", row, at)
    start = where >> 32
    return row[start : start + (where & _MASK)]


def hash_int(value: int, seed: int) -> int:
    """Spark's Murmur3_x86_32.hashInt."""
    return _ended(_mixed(seed, value & _MASK), 4)


def hash_long(value: int, seed: int) -> int:
    """Spark's Murmur3_x86_32.hashLong."""
    return _ended(_mixed(_mixed(seed, value & _MASK), value >> 32 & _MASK), 8)


def hash_bytes(data: bytes, seed: int) -> int:
    """Spark's Murmur3_x86_32.hashUnsafeBytes: each byte after the last whole word counts as a word."""
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _mixed(seed, word)
    for byte in data[whole:]:
        seed = _mixed(seed, (byte - 256 if byte > 127 else byte) & _MASK)
    return _ended(seed, len(data))


def _mixed(seed: int, word: int) -> int:
    word = word * 0xCC9E2D51 & _MASK
    word = (word << 15 | word >> 17) & _MASK
    seed ^= word * 0x1B873593 & _MASK
    seed = (seed << 13 | seed >> 19) & _MASK
    return seed * 5 + 0xE6546B64 & _MASK


def _ended(value: int, length: int) -> int:
    value ^= length
    value ^= value >> 16
    value = value * 0x85EBCA6B & _MASK
    value ^= value >> 13
    value = value * 0xC2B2AE35 & _MASK
    return value ^ value >> 16
