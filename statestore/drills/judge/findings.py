"""The judge's verdict on a job's output. Plain values: the judge knows neither the journal nor `eos`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The verdict of a drill or an account. UNKNOWN always goes with a reason."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Account:
    """The findings in a job's output.

    What is wrong is counted, or None: nothing was found, and that proves nothing, since a reader did not come to the
    end of its topic.

    Attributes:
        attempted: rows that the input holds.
        committed: rows of the batches that the query has committed.
        found: rows read, every copy counted.
        lost: committed and not found.
        duplicated: copies beyond the first.
        unexpected: found and never asked for.
        out_of_order: rows that came after a later row of their key.
        torn: batches that a reader saw in part. None also of rows that don't say which batch they belong to.
        state_equal: whether the final state is what plain pandas computes; None for a job without state.
        offenders: the ids of the first of each kind.
        reason: what the verdict rests on, in a sentence.
    """

    job: str
    attempted: int
    committed: int
    found: int
    lost: int | None
    duplicated: int | None
    unexpected: int | None
    out_of_order: int | None
    torn: int | None
    state_equal: bool | None
    offenders: Mapping[str, tuple[str, ...]]
    verdict: Verdict
    reason: str

    def is_exact(self) -> bool:
        """Tell whether all was counted, and nothing is wrong."""
        return {self.lost, self.duplicated, self.unexpected, self.out_of_order, self.torn} == {0}


@dataclass(frozen=True)
class Readers:
    """The findings of the readers of a job's output while it ran: how many batches were torn, and which ones first.

    `torn` is None if none was seen, and a reader did not come to the end.
    """

    job: str
    readers: int
    torn: int | None
    offenders: tuple[str, ...] = ()


def counted(wrong: int, whole: bool) -> int | None:
    """Return how much is wrong; None if nothing was found in what is not the `whole`."""
    return wrong if wrong or whole else None
