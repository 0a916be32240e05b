"""Questions to brokers and the admin API whose answers a query can do without, as it can without its figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from eos.errors import EosError

REST_S: Final = 60.0
"""How long nothing is asked after a question that failed."""

_Answer = TypeVar("_Answer")


class OptionalQuestions:
    """Asks them for one query, from several threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Args: tells the time in seconds."""
        self._clock = clock
        self._asks_again_at = 0.0

    def answer(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer, None where nobody gives one, or where a question failed a moment ago. Raises nothing."""
        if self._clock() < self._asks_again_at:
            return None
        try:
            return question()
        except EosError:  # what is wrong there ends the query elsewhere, or slows it no more than it must
            self._asks_again_at = self._clock() + REST_S
            return None
