"""Contenders take turns, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from tests.benchmarks.plan import Plan


class Contender(Protocol):
    """One way to bring the same rows to where they go.

    Attributes:
        name: its name in the results.
    """

    name: str

    def run(self) -> int:
        """Do the whole of it once; return how many rows were dealt with, as known afterwards."""


@dataclass(frozen=True)
class Timed:
    """What the rounds of one contender took.

    Attributes:
        rows: of each round.
        seconds: of each round, in order.
    """

    rows: int
    seconds: tuple[float, ...]

    @property
    def rates(self) -> list[float]:
        """Rows a second of each round."""
        return [self.rows / seconds for seconds in self.seconds]

    @property
    def rate(self) -> float:
        """The median of the rounds' rows a second."""
        return median(self.rates)


def take_turns(contenders: Sequence[Contender], plan: Plan, title: str) -> dict[str, Timed]:
    """Run A B C A B C …; return what each took, without the warm-up.

    Raises RuntimeError when a contender didn't deal with all rows: it is out of the race.
    """
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(plan.warm_ups + plan.rounds):
        counts = number >= plan.warm_ups
        turn = f"round {number - plan.warm_ups + 1}/{plan.rounds}" if counts else "warming up"
        for contender in contenders:
            began = time.perf_counter()
            dealt = contender.run()
            took = time.perf_counter() - began
            if dealt != plan.rows:
                raise RuntimeError(f"{contender.name} dealt with {dealt} of {plan.rows} rows")
            if counts:
                seconds[contender.name].append(took)
            plan.tell(f"{title}: {turn}: {contender.name}: {dealt / took:,.0f} rows/s")
    return {name: Timed(plan.rows, tuple(taken)) for name, taken in seconds.items()}
