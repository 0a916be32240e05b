"""Contenders take turns, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from tests.benchmarks.plan import Tell


class Turns(Protocol):
    """How often each contender's turn comes.

    Attributes:
        tell: takes a line about what has been done.
        rounds, warm_ups: runs of each contender that count, and those before that don't.
    """

    @property
    def tell(self) -> Tell: ...
    @property
    def rounds(self) -> int: ...
    @property
    def warm_ups(self) -> int: ...


class Contender(Protocol):
    """One way to bring the same rows, or bytes, to where they go.

    Attributes:
        name: its name in the results.
    """

    name: str

    def run(self) -> int:
        """Do the whole of it once; return how many rows or bytes were dealt with, as known afterwards."""


@dataclass(frozen=True)
class Timed:
    """The times of the rounds of one contender.

    Attributes:
        amount: rows or bytes of each round.
        seconds: of each round, in order.
        cpu_seconds, broker_cpu_seconds, bookie_cpu_seconds: the same, as the meters of `take_turns` tell them; none
            without.
    """

    amount: int
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...] = ()
    broker_cpu_seconds: tuple[float, ...] = ()
    bookie_cpu_seconds: tuple[float, ...] = ()

    @property
    def rates(self) -> list[float]:
        """Rows or bytes a second of each round."""
        return [self.amount / seconds for seconds in self.seconds]

    @property
    def rate(self) -> float:
        """The median of the rounds' rates."""
        return median(self.rates)


def take_turns(
    contenders: Sequence[Contender],
    turns: Turns,
    title: str,
    amount: int,
    unit: str = "rows",
    before: Callable[[], object] = lambda: None,
    cpu: Callable[[], float] | None = None,
    broker_cpu: Callable[[], float] | None = None,
    bookie_cpu: Callable[[], float] | None = None,
) -> dict[str, Timed]:
    """Run A B C A B C …; return what each took, without the warm-up and without what is done `before` each turn.

    `cpu` tells the seconds of CPU used so far by the contenders' processes, `broker_cpu` by those of the brokers,
    `bookie_cpu` by those of the bookies.
    Raises RuntimeError when a contender didn't deal with the whole amount: it is out of the race.
    """
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    meters = (cpu, broker_cpu, bookie_cpu)
    used: dict[str, list[list[float]]] = {contender.name: [[] for _ in meters] for contender in contenders}
    for number in range(turns.warm_ups + turns.rounds):
        counts = number >= turns.warm_ups
        turn = f"round {number - turns.warm_ups + 1}/{turns.rounds}" if counts else "warming up"
        for contender in contenders:
            before()
            so_far = [0.0 if meter is None else meter() for meter in meters]
            began = time.perf_counter()
            dealt = contender.run()
            took = time.perf_counter() - began
            if dealt != amount:
                raise RuntimeError(f"{contender.name} dealt with {dealt} of {amount} {unit}")
            if counts:
                seconds[contender.name].append(took)
                for meter, start, seen in zip(meters, so_far, used[contender.name], strict=True):
                    if meter is not None:
                        seen.append(meter() - start)
            turns.tell(f"{title}: {turn}: {contender.name}: {dealt / took:,.0f} {unit}/s")
    return {name: Timed(amount, tuple(taken), *map(tuple, used[name])) for name, taken in seconds.items()}
