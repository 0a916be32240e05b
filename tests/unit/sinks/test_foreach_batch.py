"""How batch functions call a sink: a wrong call, swallowed or not, is noted as the failure of the batch in hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import eos
from eos.errors import InvalidInput
from tests.unit.sinks.fakes import ROWS, FakeQuery, FakeRun


@pytest.fixture
def query(sink: eos.Sink, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeQuery]:
    """The query whose batch function runs in the test's thread."""
    query = FakeQuery()
    monkeypatch.setattr("eos.spark.query.current_query", lambda session=None, known=None: query)
    yield query
    query.ended.set()


def expect_failed(query: FakeQuery, batch_id: int, words: str) -> None:
    """Expect that the query ends with a failure of this batch, and that the next run finds it noted."""
    assert query.failed is not None
    assert (query.failed.batch_id, query.failed.run_id) == (batch_id, query.run_id)
    assert words in query.failed.error
    assert query.ends_with is not None
    assert f"Batch {batch_id} failed: " in query.ends_with
    assert words in query.ends_with


# ---- the id of the batch


@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize("given", [0, 2])
def test_an_id_that_is_not_sparks_is_refused_and_noted_for_the_batch_in_hand(
    sink: eos.Sink, query: FakeQuery, given: int, in_block: bool
) -> None:
    """Else the rows would be skipped as a replay of a batch that has this id, in each run."""
    query.in_hand = 1
    with suppress(InvalidInput):
        if in_block:
            with sink.batch(given) as txn:
                txn.write(ROWS)
        else:
            sink(ROWS, given)
    expect_failed(query, 1, f"called with batch_id={given}, and Spark runs batch 1 of the query")
    assert FakeRun.made == []


@pytest.mark.parametrize("given", ["1", True, 1.0, None])
def test_an_id_of_another_type_is_noted_too(sink: eos.Sink, query: FakeQuery, given: Any) -> None:
    query.in_hand = 1
    with suppress(InvalidInput):
        sink(ROWS, given)
    expect_failed(query, 1, f"batch_id={given!r} is {type(given).__name__}; it must be the int that Spark gives")


def test_the_batch_is_written_after_all_with_its_own_id(sink: eos.Sink, query: FakeQuery) -> None:
    query.in_hand = 1
    for given in ("1", 0):
        with suppress(InvalidInput):
            sink(ROWS, given)  # type: ignore[arg-type]
    sink(ROWS, 1)
    assert (query.failed, query.ends_with, FakeRun.made[0].taken) == (None, None, [(1, 1)])
