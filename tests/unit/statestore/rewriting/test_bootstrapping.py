"""Running the history: the query, and what it reads, are played."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from statestore.errors import Unavailable
from statestore.rewriting import bootstrapping


class Rows:
    """A history and a stream, with whatever Spark makes of them in between: each call returns itself.

    Attributes:
        ends: what `awaitTermination` raises.
        runs: whether the query does.
    """

    isStreaming = True  # noqa: N815

    def __init__(self, ends: BaseException) -> None:
        self.ends, self.runs = ends, False

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: object, **__: object) -> Rows:
        return self

    def start(self) -> Rows:
        self.runs = True
        return self

    def awaitTermination(self) -> None:  # noqa: N802
        raise self.ends

    def stop(self) -> None:
        self.runs = False


@pytest.mark.parametrize(
    ("ends", "told"), [(KeyboardInterrupt(), KeyboardInterrupt), (RuntimeError("the task failed"), Unavailable)]
)
def test_no_query_runs_on_in_a_place_that_is_then_removed(ends: BaseException, told: type[BaseException]) -> None:
    rows = Rows(ends)
    with pytest.raises(told):
        bootstrapping._run(lambda rows: rows, cast(DataFrame, rows), "rows", "checkpoint", "update")
    assert not rows.runs
