"""Python's collection of garbage, off while many objects are made that are all kept."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Let no collection begin inside. For code without cycles: a collection would look at its objects for nothing.

    Threads share the switch. Where two of them are inside, it is on again when the one that turned it off has left.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
