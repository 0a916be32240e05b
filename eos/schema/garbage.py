"""Python's collection of garbage, off or seldom while many objects are made that are all kept for a while."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 100_000
"""More objects made than dropped, until a collection begins inside `few_collections`. Python's own number is 700."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Let collections begin seldom inside: for code that keeps thousands of objects for a moment, and makes no cycles.

    A collection looks at all that is kept, so that a task that reads entries of 10 messages spends a sixth of its CPU
    on them. A program that has turned collections off, or set a larger number, keeps its setting. Threads share it.
    """
    usual = gc.get_threshold()
    if usual[0]:
        gc.set_threshold(max(usual[0], _OBJECTS), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


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
