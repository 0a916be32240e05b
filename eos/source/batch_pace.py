"""When a micro-batch begins, and how many entries it may have so that it takes about as long as is wanted.

The time of a batch is the time from its plan to the next plan, since the planner sees nothing else of it. So only a
batch counts that this limit has cut: after it there was more to read, and Spark asked for the next plan at once. Where
a trigger waits, that wait counts too, and a target shorter than the trigger's interval would shrink the batches for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from eos.pickling import PickledByName

FIRST_ENTRIES = 100
"""The first limit: small, since nothing is known of what the query does with its rows."""

FASTEST = 4.0
"""How much one batch may raise or lower the limit, at most: a single slow batch says little."""


LONGEST_WAIT_S = 15 * 60.0
"""How long a micro-batch waits for `minEntriesPerTrigger`, unless said otherwise: as of Spark's Kafka source."""


@dataclass(frozen=True, slots=True)
class Limits(PickledByName):
    """How much a micro-batch may hold.

    Attributes:
        entries: at most so many entries of all topics together; a producer that batches puts many messages in one.
        bytes: about so many bytes, by the size of the entries seen last.
        seconds: as many entries as take about so long, by what the batches before took.
        least_entries: it waits until so many are there.
        longest_wait_s: seconds after the batch before beyond which it no longer does.
    """

    entries: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    least_entries: int | None = None
    longest_wait_s: float = LONGEST_WAIT_S


class Pace:
    """The limit of one streaming query."""

    def __init__(self, target_s: float, clock: Callable[[], float]) -> None:
        """Args: what a micro-batch should take, in seconds; tells the time in seconds."""
        self._target_s = target_s
        self._clock = clock
        self._entries = FIRST_ENTRIES
        self._planned_at: float | None = None

    def entries(self) -> int:
        """Return the limit of the batch that is planned now."""
        if self._planned_at is not None:
            took_s = max(self._clock() - self._planned_at, 0.001)
            self._planned_at = None
            change = min(max(self._target_s / took_s, 1 / FASTEST), FASTEST)
            self._entries = max(1, round(self._entries * change))
        return self._entries

    def has_cut(self) -> None:
        """Say that the batch that was planned just now is smaller because of this limit alone."""
        self._planned_at = self._clock()


class Minimum:
    """Whether enough waits for a micro-batch, or has waited long enough; for one streaming query."""

    def __init__(self, entries: int, longest_wait_s: float, clock: Callable[[], float]) -> None:
        """Args: how many entries are enough; seconds between two batches at most; tells the time in seconds."""
        self._entries = entries
        self._longest_wait_s = longest_wait_s
        self._clock = clock
        self._planned_at = -inf

    def reached(self, waiting: int | None) -> bool:
        """Return whether a batch begins now. Args: entries that wait; None where nobody counted them: enough."""
        now = self._clock()
        begins = waiting is None or waiting >= self._entries or now - self._planned_at >= self._longest_wait_s
        if begins:
            self._planned_at = now
        return begins
