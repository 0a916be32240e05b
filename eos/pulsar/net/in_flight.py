"""How much may be on its way to the brokers without a receipt."""

from __future__ import annotations

import threading
from collections.abc import Callable

from eos.errors import Unanswered

DEFAULT_LIMIT = 64 * 1024 * 1024
"""Bytes on the way that a producer without a budget of its own may have."""


class InFlight:
    """A budget of bytes, shared by any number of producers."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT) -> None:
        """Args: bytes that may be unacknowledged at a time; a single larger frame is let through alone."""
        self.limit_bytes = limit_bytes
        self._used = 0
        self._releases = 0
        self._freed = threading.Condition(threading.Lock())

    @property
    def used_bytes(self) -> int:
        """Bytes now on their way."""
        return self._used

    def acquire(self, size: int, timeout_s: float, check: Callable[[], None]) -> None:
        """Wait for room. `check` is called while waiting, and ends the wait by raising.

        Raises Unanswered when nothing at all was released for `timeout_s` seconds.
        """
        with self._freed:
            while self._used and self._used + size > self.limit_bytes:
                check()
                before = self._releases
                if not self._freed.wait(timeout_s) and before == self._releases:
                    raise Unanswered(
                        f"no receipt for {timeout_s:g} s while {self._used} bytes are on their way to the brokers"
                    )
            self._used += size

    def release(self, size: int) -> None:
        """Give bytes back; with 0, just make every waiter check."""
        with self._freed:
            self._used -= size
            self._releases += 1
            self._freed.notify_all()
