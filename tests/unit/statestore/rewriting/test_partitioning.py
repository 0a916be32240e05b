"""Spark's hash of a row; the figures are what Spark's `hash` says of these values."""

from __future__ import annotations

import struct

import pytest
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

from statestore.errors import InvalidInput
from statestore.rewriting.partitioning import hash_bytes, hash_int, hash_long, partition_of


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def test_each_kind_of_value() -> None:
    assert signed(hash_int(1, 42)) == -559580957
    assert signed(hash_int(0, 42)) == 933211791
    assert signed(hash_long(1, 42)) == -1712319331
    assert signed(hash_bytes(b"Spark", 42)) == 228093765


def row(number: int | None, text: str) -> bytes:
    """An UnsafeRow of a long and a text."""
    data = text.encode()
    nulls = 1 if number is None else 0
    return struct.pack("<Qqii", nulls, number or 0, len(data), 24) + data.ljust(-len(data) // 8 * -8, b"\0")


def test_columns_are_hashed_one_after_the_other_and_nulls_are_left_out() -> None:
    place = partition_of(StructType([StructField("n", LongType()), StructField("t", StringType())]), 1_000)
    assert place(row(1, "Spark")) == signed(hash_bytes(b"Spark", hash_long(1, 42))) % 1_000
    assert place(row(None, "Spark")) == 228093765 % 1_000


@pytest.mark.parametrize("kind", [DoubleType(), ArrayType(LongType())])
def test_other_types_are_refused_by_name(kind: DoubleType | ArrayType) -> None:
    with pytest.raises(InvalidInput, match=rf"key\.k is of the type {kind.simpleString()}"):
        partition_of(StructType([StructField("k", kind)]), 3)
