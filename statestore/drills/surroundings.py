"""Where a drill runs: the versions of what takes part, and how fast the machine is."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version

import psutil

from eos.local.jars import PULSAR_VERSION
from eos.spark import capabilities
from statestore.drills.journal import Began, DrillKind, PlannedFault


def began(drill: DrillKind, rerun: str, seed: int | None = None, plan: Sequence[PlannedFault] = ()) -> Began:
    """Return the first line of a drill's journal; see `Began`."""
    return Began(
        drill=drill,
        at=datetime.now().astimezone().isoformat(timespec="seconds"),
        rerun=rerun,
        seed=seed,
        versions={
            "spark-pulsar-eos": version("spark-pulsar-eos"),
            "Pulsar": PULSAR_VERSION,
            "PySpark": capabilities.installed() or "unknown",
            "Python": platform.python_version(),
        },
        machine={
            "cores": os.cpu_count() or 0,
            "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
            "system": platform.platform(terse=True),
        },
        plan=tuple(plan),
    )
