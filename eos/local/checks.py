"""The needs of Pulsar on this machine. Each lack is an error that says what to do."""

from __future__ import annotations

import errno
import itertools
import os
import random
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from eos.errors import EosError

JAVA_MINIMUM = 17
MEGABYTE = 1_000_000
_LAST_PORT = 65_535
_PICKED_FROM = range(15_000, 32_000)


class LocalError(EosError):
    """A local Pulsar could not be fetched, started or stopped. The message says what to change."""


class PortTaken(LocalError):
    """Another process listens on a port that was to be used."""


def java() -> Path:
    """Find a Java of version 17 or newer: JAVA_HOME's, or else the one on the PATH.

    Raises:
        LocalError: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
        raise LocalError(f"No java {where}. Pulsar needs a JDK, version {JAVA_MINIMUM} or newer: install one.")
    answer = subprocess.run([found, "-version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    said = (answer.stderr + answer.stdout).strip()
    version = java_version(said)
    if version is None:
        raise LocalError(f"{found} -version does not say which Java it is: {said or 'no output'}")
    if version < JAVA_MINIMUM:
        raise LocalError(
            f"{found} is Java {version}; Pulsar needs {JAVA_MINIMUM} or newer. Set JAVA_HOME to a newer JDK."
        )
    return Path(found)


def java_version(said: str) -> int | None:
    """Read the major version out of what `java -version` prints: 17 from "17.0.15", 8 from "1.8.0_392"."""
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match[1]) if match else None


def maven() -> Path:
    """Find Maven on the PATH.

    Raises:
        LocalError: there is none.
    """
    found = shutil.which("mvn")
    if found is None:
        raise LocalError("No mvn on the PATH. Maven fetches Pulsar's jars the first time: install Maven.")
    return Path(found)


def free_space(folder: Path, needed: int, purpose: str) -> None:
    """Check that the disk of `folder`, which need not exist yet, has `needed` bytes free.

    Raises:
        LocalError: it has less.
    """
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise LocalError(
            f"{purpose} needs {needed // MEGABYTE} MB on the disk of {existing}, and {free // MEGABYTE} MB are free."
        )


@contextmanager
def disk_errors(purpose: str) -> Iterator[None]:
    """Turn "no space left" and "no permission" while writing into a `LocalError` that says what was being done."""
    try:
        yield
    except OSError as failure:
        if failure.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        raise LocalError(f"{purpose}: {failure.strerror}: {failure.filename or 'the disk'}") from failure


def ports_free(ports: Mapping[str, int]) -> None:
    """Check that nothing listens on these ports; the keys are the options that set them.

    Raises:
        PortTaken: it names each port in use and its option.
        LocalError: one is not a port.
    """
    for option, port in ports.items():
        if not 0 < port <= _LAST_PORT:
            raise LocalError(f"{option} {port} is not a port. Give a number from 1 to {_LAST_PORT}")
    taken = [(option, port) for option, port in ports.items() if not can_bind(port)]
    if taken:
        lines = "; ".join(f"port {port} is in use, choose another with {option}" for option, port in taken)
        raise PortTaken(f"{lines}. Or let free ones be picked: --ports auto")


def make_folder(path: Path) -> None:
    """Make a folder for data, and those above it, where it is not there. Raises `LocalError` where that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise LocalError(
            f"can't make the folder {path} for data: {failure.strerror}. Choose another with --data"
        ) from failure


def can_bind(port: int) -> bool:
    """Whether nothing listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as failure:
            if failure.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def pick_ports(count: int) -> list[int]:
    """Pick this many different ports that are free now.

    They lie below the range from which the system gives ports to outgoing connections: while a server is down, one of
    its own clients could be given its port, and it could not come up again.
    """
    candidates = random.sample(_PICKED_FROM, len(_PICKED_FROM))
    return list(itertools.islice((port for port in candidates if can_bind(port)), count))


def loopback() -> str:
    """The name of the loopback interface: lo on Linux, lo0 on macOS."""
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
