"""Pauses between tries: each twice as long as the one before, up to a longest one, until a time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Backoff:
    """The pauses of one wait, which begins now.

    Args:
        limit_s: seconds to wait in all. The last pause is cut short, so that the last try is made when they are over.
        first_s, longest_s: the pauses.
        sleep, clock: seconds. Default: the machine's.
    """

    def __init__(
        self,
        limit_s: float,
        first_s: float,
        longest_s: float,
        *,
        sleep: Callable[[float], None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._limit_s, self._pause_s, self._longest_s = limit_s, first_s, longest_s
        self._sleep, self._clock = sleep or time.sleep, clock or time.monotonic
        self._started = self._clock()

    @property
    def passed_s(self) -> float:
        """Seconds since the wait began."""
        return self._clock() - self._started

    def pause(self, limit_s: float | None = None) -> bool:
        """Sleep a little; False, without a pause, when the time is up. Args: a limit in place of the wait's own."""
        left = (self._limit_s if limit_s is None else limit_s) - self.passed_s
        if left <= 0:
            return False
        self._sleep(min(self._pause_s, left))
        self._pause_s = min(2 * self._pause_s, self._longest_s)
        return True


def retried(
    passes: Callable[[Exception], bool], limit_s: float, first_s: float, longest_s: float
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that calls a function again after an error that may pass; the last one is raised.

    Where the first call alone takes all the time, the wait begins again: the process was stopped meanwhile, as a
    container that is paused, and only then finds out that its connections have ended.

    Args: whether an error may pass; the others as of `Backoff`.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            backoff, called_before = Backoff(limit_s, first_s, longest_s), False
            while True:
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    if not passes(error):
                        raise
                    if not backoff.pause():
                        if called_before:
                            raise
                        backoff = Backoff(limit_s, first_s, longest_s)
                called_before = True

        return called

    return decorated
