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

    Attributes:
        attempted: rows that the input holds.
        committed: rows of the batches that the query has committed.
        found: rows read, every copy counted.
        lost: committed and not found.
        duplicated: copies beyond the first.
        unexpected: found and never asked for.
        out_of_order: rows that came after a later row of their key.
        torn: batches that a reader saw in part.
        state_equal: whether the final state is what plain pandas computes; None for a job without state.
        offenders: the ids of the first of each kind.
        reason: what the verdict rests on, in a sentence.
    """

    job: str
    attempted: int
    committed: int
    found: int
    lost: int
    duplicated: int
    unexpected: int
    out_of_order: int
    torn: int
    state_equal: bool | None
    offenders: Mapping[str, tuple[str, ...]]
    verdict: Verdict
    reason: str

    def is_exact(self) -> bool:
        """Tell whether nothing that was counted is wrong, if only nothing was."""
        return not (self.lost or self.duplicated or self.unexpected or self.out_of_order or self.torn)


@dataclass(frozen=True)
class Readers:
    """The findings of the readers of a job's output while it ran: how many batches were torn, and which ones first."""

    job: str
    readers: int
    torn: int
    offenders: tuple[str, ...] = ()
