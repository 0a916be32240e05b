"""A small explicit-state model checker: every state that can be reached, breadth first.

A model is a start, the steps out of a state, and what must never be true of a state. The checker
visits each state once and stops at the first that is wrong; since it goes breadth first, the trace
to it is a shortest one. A state is any hashable value that is equal to another only if the two have
the same future.

States that differ only in names that mean nothing (two partitions changing places) have one future
too. A model may give such states one `canonical` form, and then only one of them is visited.
"""

from __future__ import annotations

import itertools
import time
from array import array
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Model(Protocol[S]):
    """A world that can be explored."""

    def start(self) -> S:
        """Give the state before anything has happened."""
        ...

    def steps(self, state: S) -> Iterator[tuple[str, S]]:
        """Give each thing that can happen next, in words, and the state after it."""
        ...

    def canonical(self, state: S) -> S:
        """Give the one state that stands for all that are the same but for names."""
        ...

    def fault(self, state: S) -> str | None:
        """Say what is wrong with a state, or None."""
        ...

    def stuck(self, state: S) -> str | None:
        """Say why it is wrong that nothing more can happen in a state, or None where it is all right."""
        ...


@dataclass(frozen=True)
class Trace:
    """A shortest way from the start to a state that is wrong.

    Attributes:
        fault: what is wrong with the last state.
        steps: what happened, in order.
    """

    fault: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        numbered = (f"{number:4}. {step}" for number, step in enumerate(self.steps, 1))
        return "\n".join([*numbered, f"   => {self.fault}"])


@dataclass(frozen=True)
class Explored(Generic[S]):
    """The result of an exploration.

    Attributes:
        states: how many were visited.
        steps: how many lead from one of them to another, counted with repetitions.
        depth: steps on a shortest way to the farthest of them.
        seconds: how long it took.
        trace: the counter-example, or None.
        complete: every reachable state was visited. False after a counter-example, or at the limit.
    """

    states: int
    steps: int
    depth: int
    seconds: float
    trace: Trace | None
    complete: bool

    def __str__(self) -> str:
        size = f"{self.states:,} states, {self.steps:,} steps, depth {self.depth}, {self.seconds:.1f} s"
        if self.trace is not None:
            return f"counter-example after {size}:\n{self.trace}"
        return f"no fault in {size}" if self.complete else f"no fault so far in {size}; not complete"


def _silent(states: int, depth: int) -> None:
    pass


def explore(model: Model[S], limit: int = 10_000_000, progress: Callable[[int, int], None] = _silent) -> Explored[S]:
    """Visit every reachable state, until one is wrong.

    Args:
        model: what to explore.
        limit: give up after so many states.
        progress: called with the number of states and the depth, each time the depth grows.
    """
    began = time.monotonic()
    canonical, fault, steps = model.canonical, model.fault, model.steps
    first = canonical(model.start())
    states = [first]
    parents = array("q", [-1])
    seen = {first}
    depth = taken = at = 0
    level_ends = 1

    def result(wrong: str | None, last: int, complete: bool) -> Explored[S]:
        trace = None if wrong is None else Trace(wrong, tuple(_replay(model, _path(states, parents, last))))
        return Explored(len(states), taken, depth, time.monotonic() - began, trace, complete)

    wrong = fault(first)
    if wrong is not None:
        return result(wrong, 0, False)
    while at < len(states):
        if at == level_ends:
            depth, level_ends = depth + 1, len(states)
            progress(len(states), depth)
        state = states[at]
        moved = False
        for _, following in steps(state):
            found = canonical(following)
            if found == state:
                continue
            moved = True
            taken += 1
            if found in seen:
                continue
            seen.add(found)
            states.append(found)
            parents.append(at)
            wrong = fault(found)
            if wrong is not None:
                return result(wrong, len(states) - 1, False)
            if len(states) >= limit:
                return result(None, at, False)
        if not moved:
            wrong = model.stuck(state)
            if wrong is not None:
                return result(wrong, at, False)
        at += 1
    return result(None, at, True)


def _path(states: list[S], parents: array[int], last: int) -> list[S]:
    path = []
    while last >= 0:
        path.append(states[last])
        last = parents[last]
    return path[::-1]


def _replay(model: Model[S], path: list[S]) -> Iterator[str]:
    """Walk a path again from the start, so that names stay the same all the way.

    Steps that the canonical form hides are looked for, and told as well.
    """
    state = model.start()
    for before, wanted in itertools.pairwise(path):
        words, state = _way(model, state, before, wanted)
        yield from words


def _way(model: Model[S], state: S, before: S, wanted: S) -> tuple[tuple[str, ...], S]:
    ways: list[tuple[tuple[str, ...], S]] = [((), state)]
    tried = {state}
    for words, there in ways:
        for step, following in model.steps(there):
            found = model.canonical(following)
            if found == wanted:
                return (*words, step), following
            if found == before and following not in tried:
                tried.add(following)
                ways.append(((*words, step), following))
    raise AssertionError("a step was there, and now it isn't: `steps` or `canonical` is no pure function")
