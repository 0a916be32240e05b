"""Spark's error classes: which pass with time, and which don't."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from eos.spark.failures import PERMANENT, is_permanent


class Failure(PySparkException):
    def __init__(self, state: str | None) -> None:
        super().__init__("why")
        self._state = state

    def getSqlState(self) -> str | None:  # noqa: N802
        return self._state


@pytest.mark.parametrize("state", [f"{cls}003" for cls in PERMANENT])
def test_what_the_rows_themselves_bring_about_is_permanent(state: str) -> None:
    assert is_permanent(Failure(state))


@pytest.mark.parametrize(
    "error", [Failure("58030"), Failure("XX000"), Failure("38000"), Failure(None), OSError("22003")]
)
def test_all_else_may_pass(error: Exception) -> None:
    assert not is_permanent(error)
