"""A drill that is a row of timed steps and checks, and the journal of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from statestore.drills.journal import CheckEvent, DrillKind, Event, Journal, NotTested, PlannedFault, StepEvent
from statestore.drills.record import began, record

Tell = Callable[[str], None]
"""Called with what is going on."""


@dataclass
class Note:
    """The report of a step once it is over."""

    detail: str = ""


@dataclass(frozen=True)
class Acts:
    """The notes of a drill.

    Attributes:
        write: takes the events of the journal.
        tell: called with the name of each step as it begins.
    """

    write: Callable[[Event], object]
    tell: Tell = field(default=lambda _: None)

    @contextmanager
    def step(self, name: str) -> Iterator[Note]:
        """Time a step; one that fails is written down too, with the reason."""
        self.tell(name)
        note, started = Note(), time.monotonic()
        try:
            yield note
        except BaseException as error:
            note.detail = f"failed: {error}"
            raise
        finally:
            self.write(StepEvent(name, round(time.monotonic() - started, 3), note.detail))

    def check(self, name: str, passed: bool, detail: str = "") -> None:
        """Write down whether something is as it should be."""
        self.write(CheckEvent(name, passed, detail))

    def not_tested(self, what: str, why: str) -> None:
        """Write down what the drill doesn't show."""
        self.write(NotTested(what, why))


def perform(
    drill: DrillKind,
    folder: Path,
    rerun: str,
    act: Callable[[Acts], None],
    tell: Tell = lambda _: None,
    plan: Sequence[PlannedFault] = (),
) -> Path:
    """Do a drill as `record` does, and return the path of its journal.

    Args:
        drill: its kind.
        folder: where the journal goes; it must have none.
        rerun: one shell line that does the same again.
        act: the drill.
        plan: the faults that it does.

    Raises:
        InvalidInput: there is a journal in the folder already, or what the drill was asked for can't be done.
    """

    def acted(journal: Journal) -> str:
        act(Acts(journal.write, tell))
        return ""

    return record(began(drill, rerun, plan=plan), folder, acted)
