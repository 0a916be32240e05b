"""A digest says of rows what a reader would see, and nothing of how they were sent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.config import CompressionOption
from eos.delivery.digest import RowDigest
from eos.pulsar.wire.batch import BatchEncoder

PROPERTIES = pa.map_(pa.string(), pa.string())
ROWS = pa.record_batch(
    {
        "value": pa.array([b"a", None, b"", b"x" * 100, b"b"], pa.binary()),
        "key": pa.array(["k", None, "", "l", "k"]),
        "ordering_key": pa.array([None, "o", None, None, "o"]),
        "event_time": pa.array([1, None, 0, 5, 7], pa.int64()),
        "properties": pa.array([[("a", "b")], None, [], [("c", "d"), ("e", "f")], None], PROPERTIES),
    }
)


def digest(
    rows: pa.RecordBatch, cuts: Sequence[int] = (), compression: CompressionOption = "none", target: int = 1 << 20
) -> tuple[int, str]:
    taken = RowDigest()
    bounds = [0, *cuts, rows.num_rows]
    for start, end in pairwise(bounds):
        for chunk in BatchEncoder(compression, target_bytes=target).chunks(rows.slice(start, end - start)):
            taken.take_chunk(chunk)
    return taken.rows, taken.text


@given(st.sets(st.integers(0, 5)), st.sampled_from(["none", "zstd", "auto"]), st.sampled_from([1, 60, 1 << 20]))
def test_it_is_the_same_however_rows_are_cut_and_compressed(
    cuts: set[int], compression: CompressionOption, target: int
) -> None:
    assert digest(ROWS, sorted(cuts), compression, target) == digest(ROWS)


@pytest.mark.parametrize("column", ROWS.schema.names)
def test_each_column_counts(column: str) -> None:
    place = ROWS.schema.names.index(column)
    moved = ROWS.column(place).take(pa.array([4, 1, 2, 3, 0]))
    other = ROWS.set_column(place, column, moved)
    assert (digest(other) == digest(ROWS)) == (column == "key"), "only the keys of the two are the same"


def test_when_rows_are_delivered_counts() -> None:
    """It is of a frame on the wire: those of a frame have one time."""
    values = pa.array([b"a", b"b"], pa.binary())

    def at(*times: int | None) -> str:
        rows = pa.record_batch({"value": values, "deliver_at": pa.array(times, pa.int64())})
        return digest(rows, [1])[1]

    assert len({at(None, None), at(5, None), at(None, 5), at(5, 5), at(5, 6)}) == 5
    assert at(None, None) == digest(pa.record_batch({"value": values}))[1]


def test_order_number_and_bounds_of_rows_count() -> None:
    def of(*values: bytes | None) -> tuple[int, str]:
        return digest(pa.record_batch({"value": pa.array(values, pa.binary())}))

    different = [of(b"ab", b"c"), of(b"a", b"bc"), of(b"c", b"ab"), of(b"abc"), of(b"abc", b""), of(b"abc", None)]
    assert len(set(different)) == len(different)


def test_a_column_without_values_says_as_little_as_none_at_all() -> None:
    values = pa.array([b"a", b"b"], pa.binary())
    nothing = {name: pa.nulls(2, ROWS.schema.field(name).type) for name in ("key", "event_time", "properties")}
    assert digest(pa.record_batch({"value": values, **nothing})) == digest(pa.record_batch({"value": values}))
