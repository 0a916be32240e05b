"""Values where they lie, and columns of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eos.pulsar.wire.spans import Payloads, column_bytes
from tests.between import between

VALUES = [b"a", None, b"", b"long enough", None, b"z"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string()])
def test_a_column_is_the_same_values(kind: pa.DataType) -> None:
    texts = [b"before", *VALUES] if kind != pa.string() else ["before", *(one and one.decode() for one in VALUES)]
    found = Payloads.of(pa.array(texts, kind).slice(1))  # as Arrow hands on a part of a column
    assert len(found) == len(VALUES)
    assert found.column.to_pylist() == VALUES
    assert Payloads.of(found) is found
    assert [bytes(found.data[at : at + size]) for at, size in zip(found.at, found.sizes, strict=True)] == [
        one or b"" for one in VALUES
    ]


def test_values_between_other_bytes_are_copied_without_these() -> None:
    found = between(pa.array(VALUES, pa.binary()))
    assert found.column.to_pylist() == VALUES
    assert found.column is found.column, "once"
    assert found.only(np.array([1, 3, 5])).column.to_pylist() == [None, b"long enough", b"z"]
    assert found.only(np.array([], np.int64)).column.to_pylist() == []
    assert between(pa.array([b"a", b"b"])).only(np.array([1])).column.to_pylist() == [b"b"]


def test_the_bytes_of_a_part_of_a_column_are_its_own() -> None:
    values = pa.array([b"ab", b"", b"cd", b"ef"])
    assert bytes(column_bytes(values.slice(1, 2))) == b"cd"
    assert bytes(column_bytes(values.slice(4))) == b""
