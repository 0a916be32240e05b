"""Follows one fault: when it was noticed, when the jobs were at work again, and when they had caught up."""

from __future__ import annotations

from collections.abc import Callable, Collection

from statestore.drills.chaos.driver_events import DriverEvents, Word
from statestore.drills.journal import CaughtUp, Detected, Event, FencedEvent, Recovered

Write = Callable[[Event], object]


class Recovery:
    """Hears what the jobs' driver says after a fault, and writes down what that means.

    A job is at work again when it has committed a batch that it began after the fault.
    """

    def __init__(self, n: int, jobs: Collection[str], is_there: Callable[[DriverEvents], bool], write: Write) -> None:
        """`is_there` tells of a committed batch whether its job has all input now that there was at the fault."""
        self._n, self._is_there, self._write = n, is_there, write
        self._began: set[str] = set()
        self._waiting, self._behind = set(jobs), set(jobs)
        self._noticed = False

    @property
    def recovered(self) -> bool:
        """Whether every job is at work again."""
        return not self._waiting

    @property
    def over(self) -> bool:
        """Whether every job has also caught up with the input that was there."""
        return not self._waiting and not self._behind

    def notice(self, what: str) -> None:
        """Write down that the fault was noticed, the first time."""
        if not self._noticed and not self.over:
            self._noticed = True
            self._write(Detected(self._n, what))

    def see(self, said: DriverEvents) -> None:
        """Take note of what a driver said after the fault."""
        if self.over:
            return
        if said.word in (Word.TRIED, Word.FAILED):
            self.notice(f"{said.job}: {said.text}" if said.job else said.text)
        elif said.word is Word.FENCED:
            self._write(FencedEvent(self._n, said.job))
        elif said.word is Word.BEGAN:
            self._began.add(said.job)
        elif said.word is Word.COMMITTED and said.job in self._began:
            self._committed(said)

    def _committed(self, said: DriverEvents) -> None:
        if said.job in self._waiting:
            self._waiting.remove(said.job)
            if not self._waiting:
                self._write(Recovered(self._n, f"batch {said.batch} of {said.job}"))
        if said.job in self._behind and self._is_there(said):
            self._behind.remove(said.job)
        if self.over:
            self._write(CaughtUp(self._n, f"batch {said.batch} of {said.job}"))
