"""What processes hold at one moment: memory, threads, open files, sockets, and of a JVM its heap after a collection."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from eos.local.checks import java

MIB = 2**20
_COLLECTIONS, _BETWEEN_S = 3, 1.0
"""A batch that is under way holds some ten MiB; the least of some collections finds it between two."""

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


def of_jvm(pid: int) -> Figures:
    """As `of_process`, with the MiB on the heap after a full collection, the least of some, and those of classes."""
    jdk, found = java().resolve().parent, []
    for _ in range(_COLLECTIONS):
        subprocess.run([jdk / "jcmd", str(pid), "GC.run"], check=True, capture_output=True)
        told = subprocess.run([jdk / "jstat", "-gc", str(pid)], check=True, capture_output=True, text=True).stdout
        found.append(heap(told))
        time.sleep(_BETWEEN_S)
    return of_process(pid) | min(found, key=lambda one: one["heap_mib"])


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
