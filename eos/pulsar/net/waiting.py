"""Waiting for what another thread receives, where this process may be stopped meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

LOOK_S = 1.0
"""Seconds of a wait until it is looked whether what is waited for can still come."""


def look(wait: Callable[[float], object], left_s: float) -> float:
    """Wait for a second at most, and return the seconds that are left.

    A process may be stopped in the middle, as in a container that is paused. What came meanwhile is still to be
    received by another thread, which wakes up at the same time. So the stop does not count, and at least a second is
    left after it.

    Args: waits for so many seconds, or until something has come, and may raise TimeoutError; the seconds that were
        left.
    """
    look_s, began = min(left_s, LOOK_S), time.monotonic()
    with suppress(TimeoutError):
        wait(look_s)
    passed_s = time.monotonic() - began
    return left_s - passed_s if passed_s < look_s + LOOK_S else max(left_s - look_s, LOOK_S)
