"""Processes that a drill looks for and signals, and signals to the drill itself. Any process may be gone by then.

Ctrl-C and SIGTERM end a drill early, and never its cleaning up.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import psutil

EXECUTOR = "CoarseGrainedExecutorBackend"
"""The class that the JVM of an executor of Spark runs."""


def below(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    """Return all processes that come from one. None once it has ended: its pid may be another's."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    return []


def named(one: psutil.Process | None, word: str) -> bool:
    """Whether there is such a process, with a word in its command line."""
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return one is not None and word in " ".join(one.cmdline())
    return False


def lives(one: psutil.Process) -> bool:
    """Whether it runs; one that is dead and not yet reaped, by whoever has inherited it, doesn't."""
    with suppress(psutil.NoSuchProcess):
        return bool(one.status() != psutil.STATUS_ZOMBIE)
    return False


def kill_all(those: Iterable[psutil.Process]) -> None:
    """SIGKILL each of them."""
    for one in those:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def send(those: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send each of them a signal."""
    for one in those:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(number)


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
