"""Ctrl-C and SIGTERM: they end a drill early, and never its cleaning up."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, also where a shell has turned that off."""
    with _signals(signal.default_int_handler):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Clean up to the end, however often Ctrl-C is pressed."""
    with _signals(signal.SIG_IGN):
        yield


@contextmanager
def _signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
