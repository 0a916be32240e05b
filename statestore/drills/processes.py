"""Processes that a drill looks for and signals, any of which may be gone by then."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from contextlib import suppress

import psutil

EXECUTOR = "CoarseGrainedExecutorBackend"
"""The class that the JVM of an executor of Spark runs."""


def below(pid: int) -> list[psutil.Process]:
    """Return all processes that come from one."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
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
