"""Which batches a run of a query takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from eos.commit.decision import Identity
from eos.errors import CommitUnknown, ConnectionLost, EosError, Fenced, InvalidInput, NotCommitted
from eos.sinks.metrics import Metrics
from eos.sinks.run import Run

IDENTITY = Identity("query", "run", "offsets")


class Scripted(Run):
    """A run whose batches end as they are told to."""

    def __init__(self, *ends: BaseException | None) -> None:
        super().__init__("run", None, Metrics())
        self.ends = list(ends)
        self.written: list[int] = []

    def _write(self, batch_id: int, writes: Sequence[Any], identity: Identity) -> None:
        end = self.ends.pop(0) if self.ends else None
        if end is not None:
            raise end
        self.written.append(batch_id)


@pytest.mark.parametrize("kind", [Run, Scripted], ids=["shadow", "owning"])
def test_a_batch_is_taken_once_in_a_run(kind: type[Run]) -> None:
    """Else the second write would be skipped as a replay, and its rows be lost without a word."""
    run = Run("run", None, Metrics()) if kind is Run else Scripted()
    run.take(3, [], IDENTITY)
    with pytest.raises(InvalidInput, match=r"written or skipped batch 3 already.*Put both writes into one `with"):
        run.take(3, [], IDENTITY)
    run.take(4, [], IDENTITY)


@pytest.mark.parametrize("error", [InvalidInput("row 3"), NotCommitted("aborted"), Fenced("refused by the owner")])
def test_a_batch_that_is_known_not_to_be_visible_is_taken_again(error: EosError) -> None:
    run = Scripted(error)
    with pytest.raises(type(error)):
        run.take(3, [], IDENTITY)
    run.take(3, [], IDENTITY)
    assert run.written == [3]


@pytest.mark.parametrize("error", [CommitUnknown("no answer"), ConnectionLost("a defect"), KeyboardInterrupt()])
def test_a_batch_that_may_be_visible_is_not_taken_again(error: BaseException) -> None:
    """The log may show it as committed, and it would be skipped: with the rows of the first call, not of this."""
    run = Scripted(error)
    with pytest.raises(type(error)):
        run.take(3, [], IDENTITY)
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"What became of batch 3 is not known.*Start the query again"):
            run.take(3, [], IDENTITY)
    assert run.written == []
