"""Partitions against vectors from the official clients."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eos.config import KEY_HASHES, KeyHash
from eos.errors import InvalidInput
from eos.pulsar.wire import hashing, long_keys
from eos.pulsar.wire.hashing import hash_keys
from eos.pulsar.wire.keys import wire_keys
from eos.pulsar.wire.routing import (
    NO_PARTITION,
    Sorted,
    part_by_delivery_time,
    part_by_sticky_key,
    partition_of,
    sort_by_partition,
)

VECTORS = Path(__file__).parents[3] / "vectors"
HASHES = json.loads((VECTORS / "key_hashes.json").read_text(encoding="utf-8"))
BOOST = json.loads((VECTORS / "boost_partitions.json").read_text(encoding="utf-8"))
KEYS = [vector["key"] for vector in HASHES]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("key_hash", ["murmur3", "java"])
def test_hashes_are_those_of_the_java_client(key_hash: KeyHash, kind: pa.DataType) -> None:
    column = pa.array([key.encode() for key in KEYS], kind)
    assert hash_keys(column, key_hash).tolist() == [vector[key_hash] for vector in HASHES]


@pytest.mark.parametrize("partitions", [13, 16])
def test_boost_partitions_are_those_of_the_python_client(partitions: int) -> None:
    chosen = BOOST[str(partitions)]
    assert partition_of(pa.array(list(chosen)), partitions, "boost").tolist() == list(chosen.values())


@pytest.mark.parametrize("key_hash", KEY_HASHES)
def test_neighbours_and_slices_change_nothing(key_hash: KeyHash) -> None:
    column = pa.array(KEYS)
    together = partition_of(column, 7, key_hash).tolist()
    assert [partition_of(column.slice(i, 1), 7, key_hash).item() for i in range(len(KEYS))] == together
    assert partition_of(column.slice(5, 20), 7, key_hash).tolist() == together[5:25]
    assert partition_of(column.dictionary_encode().cast(pa.string()), 7, key_hash).tolist() == together


@pytest.mark.parametrize("key_hash", KEY_HASHES)
@pytest.mark.parametrize("padding", ["", "long " * 40], ids=["short keys", "long keys"])
def test_many_keys_have_the_hashes_of_few(key_hash: KeyHash, padding: str) -> None:
    keys = [f"{padding}key-{number * 7919 % 100_003}".encode() for number in range(70_000)]
    few = [hash_keys(pa.array([key]), key_hash).item() for key in keys[65_500:65_600]]
    assert hash_keys(pa.array(keys), key_hash)[65_500:65_600].tolist() == few


@pytest.mark.parametrize("key_hash", KEY_HASHES)
@pytest.mark.parametrize("letters", ["ab", "aé€𐍈"], ids=["ascii", "unicode"])
def test_a_long_key_has_one_hash_by_both_ways(key_hash: KeyHash, letters: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(3)
    keys = ["".join(chosen.choices(letters, k=length)) for length in (*range(60, 80), 511, 512, 1023, 1700)]
    monkeypatch.setattr(long_keys, "_BLOCK", 64)
    column = pa.array([*keys, *KEYS, None])
    columns = [column, column.cast(pa.large_string())]
    monkeypatch.setattr(hashing, "LONG_KEY_BYTES", 1 << 30)
    by_steps = [hash_keys(wire_keys(one).text, key_hash).tolist() for one in columns]
    monkeypatch.setattr(hashing, "LONG_KEY_BYTES", 32)
    one_by_one = [hash_keys(wire_keys(one).text, key_hash).tolist() for one in columns]
    assert by_steps == one_by_one


@pytest.mark.parametrize("key_hash", KEY_HASHES)
def test_the_steps_of_a_column_do_not_grow_with_its_longest_key(
    key_hash: KeyHash, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    steps = hashing._Words.steps

    def counted(words: hashing._Words) -> Iterator[Any]:
        for step in steps(words):
            taken.append(step)
            yield step

    monkeypatch.setattr(hashing._Words, "steps", counted)
    hash_keys(pa.array([b"k" * 1_000_000, b"short", b"k" * 1024]), key_hash)
    assert 0 < len(taken) <= 256


@pytest.mark.parametrize("key_hash", KEY_HASHES)
def test_a_key_is_routed_alike_as_text_and_as_bytes(key_hash: KeyHash) -> None:
    as_bytes = pa.array([key.encode() for key in KEYS])
    assert partition_of(as_bytes, 9, key_hash).tolist() == partition_of(pa.array(KEYS), 9, key_hash).tolist()


@pytest.mark.parametrize("key_hash", KEY_HASHES)
def test_bytes_that_are_no_text_are_routed_by_their_base64(key_hash: KeyHash) -> None:
    keys = [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ok", b"\xe2\x82\xac"]
    wire = [base64.b64encode(key).decode() for key in keys[:4]] + ["ok", "€"]
    assert (
        partition_of(pa.array(keys), 1_000, key_hash).tolist() == partition_of(pa.array(wire), 1_000, key_hash).tolist()
    )


@pytest.mark.parametrize("key_hash", KEY_HASHES)
def test_a_text_column_that_holds_other_bytes_is_routed_like_a_binary_one(key_hash: KeyHash) -> None:
    keys = pa.array([b"\xff", b"a", None, b"\xc3"])
    unchecked = pa.Array.from_buffers(pa.string(), len(keys), keys.buffers())
    assert partition_of(unchecked, 1_000, key_hash).tolist() == partition_of(keys, 1_000, key_hash).tolist()


@pytest.mark.parametrize("key_hash", KEY_HASHES)
def test_a_row_without_a_key_has_no_partition(key_hash: KeyHash) -> None:
    partitions = partition_of(pa.array([None, "a", None]), 5, key_hash)
    assert (partitions == NO_PARTITION).tolist() == [True, False, True]
    assert partition_of(pa.array([None, None], pa.null()), 5, key_hash).tolist() == [NO_PARTITION] * 2
    assert partition_of(pa.array([], pa.string()), 5, key_hash).tolist() == []


def test_keys_of_another_type_are_refused() -> None:
    with pytest.raises(InvalidInput, match='column "key" is int64'):
        partition_of(pa.array([1]), 3, "java")


def test_rows_are_sorted_and_keep_their_order_within_a_partition() -> None:
    rows = pa.RecordBatch.from_pydict({"n": range(7)})
    partitions = np.array([2, -1, 0, 2, 2, 0, 40_000], dtype=np.int32)
    found = sort_by_partition(rows, partitions)
    assert found.rows.column("n").to_pylist() == [1, 2, 5, 0, 3, 4, 6]
    assert (found.partitions, found.ends) == ([-1, 0, 2, 40_000], [1, 3, 6, 7])


def test_rows_of_one_partition_are_not_copied() -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
    found = sort_by_partition(rows, np.array([3, 3], dtype=np.int32))
    assert (found.partitions, found.ends) == ([3], [2])
    assert found.rows.column(0).buffers()[2].address == rows.column(0).buffers()[2].address


def test_no_rows_make_no_parts() -> None:
    rows = pa.RecordBatch.from_pydict({"value": pa.array([], pa.binary())})
    found = sort_by_partition(rows, np.array([], dtype=np.int32))
    assert (found.partitions, found.ends) == ([], [])


def test_parts_of_sticky_keys_keep_the_order_of_each_key() -> None:
    """The ordering key comes before the key; bytes that are no text have the form that they have on the wire."""
    batch = pa.record_batch(
        {
            "key": pa.array([b"a", b"a", b"a", None, b"\xff", b"b", None, b"a"], pa.binary()),
            "ordering_key": pa.array([None, None, None, None, None, b"a", None, b"z"], pa.binary()),
            "row": range(8),
        }
    )
    parts = part_by_sticky_key(sort_by_partition(batch, np.array([1, 0, 1, 1, 1, 1, 1, 0], dtype=np.int32)))
    starts = [0, *parts.ends[:-1]]
    rows = [parts.rows.column("row")[start:end].to_pylist() for start, end in zip(starts, parts.ends, strict=True)]
    assert parts.partitions == [0, 0, 1, 1, 1]
    assert sorted(zip(parts.partitions, rows, strict=True)) == [
        (0, [1]),
        (0, [7]),
        (1, [0, 2, 5]),
        (1, [3, 6]),
        (1, [4]),
    ]


def test_rows_without_keys_are_one_part() -> None:
    parts = Sorted(pa.record_batch({"value": ["x", "y"]}), [3], [2])
    assert part_by_sticky_key(parts) is parts
    nothing = Sorted(pa.record_batch({"key": pa.array([], pa.string())}), [], [])
    assert part_by_sticky_key(nothing) is nothing


def test_a_key_and_the_base64_of_another_are_two_keys() -> None:
    """Their form on the wire is the same but for a flag, and a frame can say but one."""
    batch = pa.record_batch({"key": pa.array([b"\xff", b"/w==", b"\xff"], pa.binary()), "row": range(3)})
    parts = part_by_sticky_key(Sorted(batch, [0], [3]))
    assert parts.ends == [2, 3]
    assert parts.rows.column("row").to_pylist() == [0, 2, 1]


SOON, LATER = 1_790_000_001_000, 1_790_000_002_000


def timed(*times: int | None) -> pa.RecordBatch:
    return pa.record_batch({"deliver_at": pa.array(times, pa.int64()), "row": range(len(times))})


def test_parts_of_delivery_times_keep_the_order_of_each_time() -> None:
    rows = timed(SOON, None, LATER, SOON, None, LATER, SOON)
    parts = part_by_delivery_time(Sorted(rows, [3, 5], [4, 7]))
    assert (parts.partitions, parts.ends) == ([3, 3, 3, 5, 5, 5], [2, 3, 4, 5, 6, 7])
    assert parts.rows.column("row").to_pylist() == [0, 3, 1, 2, 6, 4, 5]
    assert parts.rows.column("deliver_at").to_pylist() == [SOON, SOON, None, LATER, SOON, None, LATER]


def test_a_time_that_is_not_after_1970_is_none() -> None:
    due = [None, -(2**63), 0, -1]
    parts = part_by_delivery_time(Sorted(timed(*due), [0], [4]))
    assert parts.ends == [4]
    assert "deliver_at" not in parts.rows.schema.names
    parts = part_by_delivery_time(Sorted(timed(*due, 1), [0], [5]))
    assert parts.ends == [4, 5]
    assert parts.rows.column("deliver_at").to_pylist() == [None] * 4 + [1]


def test_without_times_parts_stay_as_they_are() -> None:
    parts = Sorted(pa.record_batch({"value": ["x", "y"]}), [3], [2])
    assert part_by_delivery_time(parts) is parts
    nothing = Sorted(timed(), [], [])
    assert part_by_delivery_time(nothing) is nothing


def test_times_of_another_type_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r'column "deliver_at" is double. It must be int64'):
        part_by_delivery_time(Sorted(pa.record_batch({"deliver_at": [1.5]}), [0], [1]))
