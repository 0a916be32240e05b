"""What `collectAsArrowToPython` writes: batches as the partitions end, then the places they belong in."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pytest

from eos.spark.jobs import _few

SCHEMA = pa.schema([("value", pa.int64())])


def stream(*batches: list[int], places: list[int]) -> io.BytesIO:
    """Write it as Spark does: an Arrow stream, the number of batches, and the place of each."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(pa.record_batch([pa.array(batch, pa.int64())], SCHEMA))
    out.write(struct.pack(f"!i{len(places)}i", len(places), *places))
    out.seek(0)
    return out


def values(table: pa.Table | None) -> list[int]:
    assert table is not None
    found: list[int] = table.column("value").to_pylist()
    return found


def test_batches_that_arrive_in_another_order_are_put_in_the_order_of_the_partitions() -> None:
    arrived = stream([30, 31], [10], [20], places=[1, 2, 0])
    assert values(_few(arrived, 4)) == [10, 20, 30, 31]


@pytest.mark.parametrize(("limit", "few"), [(3, True), (2, False)])
def test_more_rows_than_the_limit_are_none_and_the_stream_is_read_to_its_end(limit: int, few: bool) -> None:
    arrived = stream([1], [2, 3], places=[0, 1])
    rows = _few(arrived, limit)
    assert (rows is not None) is few
    assert arrived.read() == b""


def test_no_rows_have_a_schema_all_the_same() -> None:
    rows = _few(stream(places=[]), 1)
    assert rows is not None
    assert (rows.num_rows, rows.schema) == (0, SCHEMA)
