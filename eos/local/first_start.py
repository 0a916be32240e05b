"""A Pulsar that is started once and ended in good order, so that those after it share its classes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from eos.local import class_archive, jars, places
from eos.local.checks import LocalError
from eos.local.jvm import QUICK_START
from eos.local.places import Tell, quiet
from eos.local.pulsar import LocalPulsar

_END_S = 120.0
_POLL_S = 0.2


def keep_classes(tell: Tell = quiet) -> None:
    """Read Pulsar's classes once for all that start quickly here; takes half a minute, and nothing the second time.

    What goes wrong is told: Pulsar then starts more slowly.
    """
    jars.classpath(tell)
    archive = class_archive.pulsar_archive(QUICK_START)
    with places.locked("classes", tell):
        if archive.exists():
            return
        tell("Reading Pulsar's classes once for all brokers")
        try:
            with class_archive.kept(archive) as unfinished:
                _start_and_end(unfinished)
        except LocalError as error:
            tell(f"Pulsar's classes can't be shared, so brokers start more slowly: {error}")


def _start_and_end(archive: Path) -> None:
    with LocalPulsar(flags=(*QUICK_START, f"-XX:ArchiveClassesAtExit={archive}")) as pulsar:
        if pulsar.pid is not None:
            os.kill(pulsar.pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_S
        while pulsar.pid is not None:
            if time.monotonic() > deadline:
                raise LocalError(f"it did not end within {_END_S:g} s of SIGTERM")
            time.sleep(_POLL_S)
