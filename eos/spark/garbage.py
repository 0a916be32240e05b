"""Frees objects in Spark's JVM in time that Python no longer uses.

A Java object of py4j and the methods that were called of it refer to each other (`JavaObject._methods`,
`JavaMember.container`), so Python frees it by its collector alone, and until then the JVM keeps what it stands for: of
each batch a plan. An object that outlives a batch's second collection is old, and Python looks at old objects once they
have grown by a quarter: in a driver that does little else that is once in a thousand batches.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

EVERY_S = 300.0
"""Between two collections: each holds the driver up for about a tenth of a second."""


class OldGarbage:
    """Collects what is old, now and then. Args: seconds between two collections; a clock."""

    def __init__(self, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._last = clock()

    def collect(self) -> None:
        """Collect all generations if it is time to, and the caller's program has Python collect at all."""
        now = self._clock()
        if now - self._last >= self._every_s and gc.isenabled():
            self._last = now
            gc.collect()
