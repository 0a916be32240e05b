"""A drill that is a row of timed steps and checks, and the journal of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eos.errors import EosError
from statestore.drills.interruption import terminable
from statestore.drills.journal import (
    Check,
    DrillKind,
    Ended,
    Event,
    Journal,
    NotTested,
    PlannedFault,
    Step,
)
from statestore.drills.surroundings import JOURNAL, began
from statestore.errors import Damaged, InvalidInput

Tell = Callable[[str], None]
"""Called with what is going on."""


@dataclass
class Note:
    """What is to be said of a step once it is over."""

    detail: str = ""


@dataclass(frozen=True)
class Acts:
    """What a drill writes down.

    Attributes:
        write: takes the events of the journal.
        tell: told the name of each step as it begins.
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
            self.write(Step(name, round(time.monotonic() - started, 3), note.detail))

    def check(self, name: str, passed: bool, detail: str = "") -> None:
        """Write down whether something is as it should be."""
        self.write(Check(name, passed, detail))

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
    """Do a drill and return the path of its journal. SIGINT and SIGTERM end it early.

    Data that turn out to be damaged make it fail. What else goes wrong ends it, and its verdict is UNKNOWN.

    Args:
        drill: its kind.
        folder: where the journal goes; it must have none.
        rerun: one shell line that does the same again.
        act: the drill.
        plan: the faults that it does.

    Raises:
        InvalidInput: there is a journal in the folder already, or what the drill was asked for can't be done.
    """
    path = folder / JOURNAL
    with Journal.create(path, began(drill, rerun, plan=plan)) as journal, terminable():
        ended = Ended(interrupted=True, reason="the drill died")
        try:
            act(Acts(journal.write, tell))
            ended = Ended()
        except Damaged as error:
            journal.write(Check("what is stored is what was written", False, str(error)))
            ended = Ended(reason=str(error))
        except InvalidInput as error:
            ended = Ended(interrupted=True, reason=str(error))
            raise
        except EosError as error:
            ended = Ended(interrupted=True, reason=str(error))
        except BaseException as error:
            stopped = _is_interrupt(error)
            ended = Ended(interrupted=True, reason="somebody stopped it" if stopped else repr(error))
            if not stopped:
                raise
        finally:
            journal.write(ended)
    return path


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: py4j, for one, fails in other ways when a call is interrupted."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
