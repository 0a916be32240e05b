"""Two things at once, so that their round trips overlap."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


def side_by_side(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Do both at the same time, the second in this thread, and return what they return.

    Raises the second's failure, else the first's, once both have ended.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="eos") as pool:
        beside = pool.submit(first)
        try:
            done = second()
        finally:
            wait([beside])
        return beside.result(), done
