"""The name of a row in an error message."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eos.pulsar.wire.columns import row_name


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"value": ["a", "b"]}, "row 6"),
        ({"value": ["a", "b"], "row": [100, 101]}, "row 101"),
        ({"key": ["k", "flight-7"], "row": [0, 1]}, 'row 1 (key "flight-7")'),
        ({"key": [b"k", b"\xff7"]}, 'row 6 (key "\\xff7")'),
        ({"key": ["k", None]}, "row 6"),
        ({"key": ["k", "x" * 1000]}, f'row 6 (key "{"x" * 40}…")'),
    ],
)
def test_a_row_is_named_by_its_number_and_its_key(columns: dict[str, list[object]], name: str) -> None:
    assert row_name(pa.RecordBatch.from_pydict(columns), 1, first_row=5) == name
