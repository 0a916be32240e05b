"""Which parts of a join's state are compared: those that Spark's state data source gives in each version."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.difference import parts_of
from statestore.checkpoint.operators import Operator

FOUR = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")


@pytest.mark.parametrize(
    ("version", "stores", "expected"),
    [
        ("1", FOUR, [(f"storeName={store}", False) for store in FOUR]),
        ("2", FOUR, [(f"storeName={store}", False) for store in FOUR]),
        ("3", ("default",), [(f"storeName={store}", False) for store in FOUR]),
        ("4", ("default",), [("joinSide=left", True), ("joinSide=right", True)]),
        ("5", ("default",), [("joinSide=left", True), ("joinSide=right", True)]),
    ],
)
def test_parts_of_a_join(
    version: str, stores: tuple[str, ...], expected: list[tuple[str, bool]], tmp_path: Path
) -> None:
    operator = Operator(0, "symmetricHashJoin", stores, 2, "", ())
    found = parts_of(LocalFiles(tmp_path), operator, version)
    assert [("=".join(part.reading[0]), part.many) for part in found] == expected
