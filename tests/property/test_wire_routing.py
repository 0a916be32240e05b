"""Hashes of whole columns against the same hashes, one key at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.config import KeyHash
from eos.pulsar.wire.routing import NO_PARTITION, partition_of, sort_by_partition

TEXT = st.text(max_size=30)
BITS_32 = 2**32 - 1
BITS_64 = 2**64 - 1


def murmur3(key: str) -> int:
    data = key.encode()
    state = 0
    for at in range(0, len(data) + 1, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0xCC9E2D51 & BITS_32
        word = (word << 15 | word >> 17) * 0x1B873593 & BITS_32
        state ^= word
        if at + 4 <= len(data):
            state = ((state << 13 | state >> 19) * 5 + 0xE6546B64) & BITS_32
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & BITS_32
    state = (state ^ state >> 13) * 0xC2B2AE35 & BITS_32
    return (state ^ state >> 16) & 0x7FFFFFFF


def java(key: str) -> int:
    units = np.frombuffer(key.encode("utf-16-le"), dtype=np.uint16).tolist()
    state = 0
    for unit in units:
        state = (state * 31 + unit) & BITS_32
    return state & 0x7FFFFFFF


def boost(key: str) -> int:
    data = key.encode()
    step = 0x9E3779B97F4A7C15
    factor = step * step & BITS_64

    def fold(number: int) -> int:
        product = (number & BITS_64) * factor
        return product & BITS_64 ^ product >> 64

    salt = fold(step)
    state = salt ^ len(data)
    for at in range(0, len(data) + 1, 8):
        salt = salt + step & BITS_64
        state ^= fold(int.from_bytes(data[at : at + 8], "little") + salt)
    return fold(state + salt) & 0x7FFFFFFF


@pytest.mark.parametrize(("key_hash", "one"), [("murmur3", murmur3), ("java", java), ("boost", boost)])
@given(st.lists(st.none() | TEXT, max_size=12), st.integers(1, 1_000))
def test_columns_are_hashed_like_single_keys(
    key_hash: KeyHash, one: Callable[[str], int], keys: list[str | None], partitions: int
) -> None:
    expected = [NO_PARTITION if key is None else one(key) % partitions for key in keys]
    assert partition_of(pa.array(keys, pa.string()), partitions, key_hash).tolist() == expected


@given(st.lists(st.integers(-1, 70_000), max_size=30))
def test_sorting_keeps_every_row_and_the_order_in_each_partition(partitions: list[int]) -> None:
    rows = pa.RecordBatch.from_pydict({"n": pa.array(range(len(partitions)), pa.int64())})
    found = sort_by_partition(rows, np.array(partitions, dtype=np.int32))
    assert found.partitions == sorted(set(partitions))
    kept = found.rows.column("n").to_pylist()
    for number, start, end in zip(found.partitions, [0, *found.ends], found.ends, strict=False):
        assert kept[start:end] == [row for row, partition in enumerate(partitions) if partition == number]
    assert len(kept) == (found.ends or [0])[-1]
