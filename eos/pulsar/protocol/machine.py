"""A state machine is a table.

Each machine of this package is one `TransitionTable`: {(state, input): next state}. An input that is not in the table
is not allowed, and `Machine.take` refuses it without changing the state. The diagrams in docs/protocol-states.md are
drawn from the table (`python -m eos.pulsar.protocol.diagram`), and the tests walk through it move by move.

Inputs come from two sides. The program asks for those in `ours`. One of them out of turn is a mistake of the caller,
`OutOfTurn`. All others come from the broker or the network. One of them out of turn is an `UnexpectedFrame`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from eos.errors import OutOfTurn, UnexpectedFrame

S = TypeVar("S", bound=StrEnum)
I = TypeVar("I", bound=StrEnum)  # noqa: E741


@dataclass(frozen=True)
class TransitionTable(Generic[S, I]):
    """The transitions of one machine.

    Attributes:
        name: what the machine stands for, in one word; used in messages and diagrams.
        start: the state it begins in.
        ours: the inputs that this side decides on. All others come from outside.
        moves: {(state, input): next state}. A missing pair is refused.
    """

    name: str
    start: S
    ours: frozenset[I]
    moves: Mapping[tuple[S, I], S]

    @property
    def states(self) -> tuple[S, ...]:
        """Every state, in the order of its enum."""
        return tuple(type(self.start))

    @property
    def ends(self) -> frozenset[S]:
        """The states that nothing leads out of, to another state."""
        return frozenset(self.states) - {a for (a, _), b in self.moves.items() if a is not b}


class Machine(Generic[S, I]):
    """A table with a finger on one of its states."""

    __slots__ = ("state", "table")

    def __init__(self, table: TransitionTable[S, I]) -> None:
        self.table = table
        self.state: S = table.start

    def allows(self, happening: I) -> bool:
        """Whether `take` would accept this input now."""
        return (self.state, happening) in self.table.moves

    def take(self, happening: I) -> S:
        """Move on. Raises OutOfTurn or UnexpectedFrame, and stays, when the table has no such move."""
        try:
            self.state = self.table.moves[self.state, happening]
        except KeyError:
            ours = happening in self.table.ours
            kind, who = (OutOfTurn, "asked for") if ours else (UnexpectedFrame, "received")
            raise kind(f"{self.table.name}: {who} '{happening}' while {self.state}") from None
        return self.state
