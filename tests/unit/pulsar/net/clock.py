"""A clock that goes on only when a test or the code under test lets time pass."""

from __future__ import annotations

import threading
import time


class Clock:
    """Stands for the module `time` in one of ours: to sleep takes no time.

    Attributes:
        now: seconds.
        seen: what each thread has last seen of it, by its ident.
    """

    def __init__(self) -> None:
        self.now = 1_000.0
        self.seen: dict[int, float] = {}

    @property
    def passed(self) -> float:
        """Seconds since it was made."""
        return self.now - 1_000.0

    def monotonic(self) -> float:
        now = self.now
        self.seen[threading.get_ident()] = now
        return now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def time_ns(self) -> int:
        return time.time_ns()
