"""How much may be on its way to the brokers without a receipt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf

from eos.errors import Unanswered
from eos.pulsar.net.waiting import look

DEFAULT_LIMIT = 64 * 1024 * 1024
"""Bytes on the way that a producer without a budget of its own may have."""


class InFlight:
    """A budget of bytes, shared by any number of producers."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT) -> None:
        """Args: bytes that may be unacknowledged at a time; a single larger frame is let through alone."""
        self.limit_bytes = limit_bytes
        self._used = 0
        self._last_receipt_at = -inf
        self._freed = threading.Condition(threading.Lock())

    @property
    def used_bytes(self) -> int:
        """Bytes now on their way."""
        return self._used

    def patience(self, since: float, silence_s: float, until: float) -> float:
        """Return how many seconds are left to wait for a receipt; 0 or less: none.

        Each receipt of any producer of this budget starts the silence again, so that a slow broker is not taken for a
        dead one.

        Args: when the wait began; the longest time without a receipt; the end of all waiting. Instants are
        those of `time.monotonic`.
        """
        return min(max(since, self._last_receipt_at) + silence_s, until) - time.monotonic()

    def acquire(self, size: int, silence_s: float, check: Callable[[], None], until: float = inf) -> None:
        """Wait for room. `check` is called while waiting, and ends the wait by raising.

        Args: bytes; as of `patience`; the check; as of `patience`.
        Raises Unanswered when no receipt came for `silence_s` seconds, or at `until`.
        """
        since = time.monotonic()
        with self._freed:
            while self._used and self._used + size > self.limit_bytes:
                check()
                left = self.patience(since, silence_s, until)
                if left <= 0:
                    under_way = f"{self._used} bytes are on their way to the brokers"
                    raise Unanswered(f"no receipt {waited(until, silence_s)} while {under_way}")
                since = max(since, look(self._freed.wait, left) + time.monotonic() - silence_s)
            self._used += size

    def receipt(self, size: int) -> None:
        """Give the bytes of a frame back that has its receipt."""
        self._last_receipt_at = time.monotonic()
        self.release(size)

    def release(self, size: int) -> None:
        """Give back bytes that get no receipt any longer. With 0, just make every waiter check."""
        with self._freed:
            self._used -= size
            self._freed.notify_all()


def waited(until: float, silence_s: float) -> str:
    """Say, for an error, how long a wait for receipts was. Args: as of `InFlight.patience`."""
    return "before the time given for it ended" if time.monotonic() >= until else f"within {silence_s:g} s"
