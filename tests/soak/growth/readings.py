"""What processes hold at one moment: memory, threads, open files, sockets, and of a JVM its heap after a collection."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from eos.local.checks import java

MIB = 2**20
_LOOKS, _BETWEEN_S = 17, 1.3
Figures = dict[str, float]


def of_process(pid: int) -> Figures:
    """Return resident MiB, threads, open files, and how many of these are sockets."""
    one = psutil.Process(pid)
    kinds = list(_open_files(pid))
    return {
        "rss_mib": round(one.memory_info().rss / MIB, 1),
        "threads": one.num_threads(),
        "fds": len(kinds),
        "sockets": sum(kind.startswith("socket:") for kind in kinds),
    }


def collected(pid: int) -> Figures:
    """Return the MiB on the heap of a JVM after a full collection, and those of its classes."""
    jdk = java().resolve().parent
    subprocess.run([jdk / "jcmd", str(pid), "GC.run"], check=True, capture_output=True)
    told = subprocess.run([jdk / "jstat", "-gc", str(pid)], check=True, capture_output=True, text=True).stdout
    return heap(told)


def least(ask: Callable[[], Figures]) -> Figures:
    """Ask again and again, over longer than four batches and a round of maintenance, and return each figure's least.

    What a batch holds while it runs, and until its tasks are forgotten, is no growth; nor is what waits to be deleted.
    """
    found = ask()
    for _ in range(_LOOKS - 1):
        time.sleep(_BETWEEN_S)
        found = {name: min(value, found[name]) for name, value in ask().items()}
    return found


def heap(told: str) -> Figures:
    """Read what `jstat -gc` prints, in KiB: two lines, names and numbers."""
    names, numbers = (line.split() for line in told.strip().splitlines())
    by_name = dict(zip(names, numbers, strict=True))
    used = sum(float(by_name[name]) for name in ("S0U", "S1U", "EU", "OU"))
    return {"heap_mib": round(used / 1024, 1), "classes_mib": round(float(by_name["MU"]) / 1024, 1)}


def of_workers(pids: Sequence[int]) -> Figures:
    """The Python workers of a driver: how many, the largest one's memory, and threads and open files of all."""
    found = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            found.append(of_process(pid))
    return {
        "processes": len(found),
        "largest_rss_mib": max((one["rss_mib"] for one in found), default=0.0),
        "threads": sum(one["threads"] for one in found),
        "fds": sum(one["fds"] for one in found),
        "sockets": sum(one["sockets"] for one in found),
    }


def below(driver: int) -> tuple[int, list[int]]:
    """The JVM that a Python driver has started, and the Python processes below that.

    Raises LookupError when there is no JVM.
    """
    jvm = next((one for one in psutil.Process(driver).children() if one.name() == "java"), None)
    if jvm is None:
        raise LookupError(f"process {driver} has started no JVM")
    return jvm.pid, [one.pid for one in jvm.children(recursive=True)]


def _open_files(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed while we looked
            yield os.readlink(link)
