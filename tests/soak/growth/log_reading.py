"""Read a sink's control log as a takeover does, each time with a new client, in a process of its own.

    python -m tests.soak.growth.log_reading SERVICE_URL NAME

Prints JSON: the records that were read, and the least wall and CPU milliseconds of some readings. The least one is the
steadiest on a machine that does other things too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from eos.config import Cluster
from eos.doctor.sinks import log_of, read
from eos.pulsar.net.client import Client

READINGS = 9
NAMESPACE = "public/default"


def measure(service_url: str, name: str) -> dict[str, float]:
    """Read it in a process of its own, and return what that prints."""
    line = [sys.executable, "-m", "tests.soak.growth.log_reading", service_url, name]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _read(service_url: str, name: str) -> tuple[int, float, float]:
    records = 0

    def count(record: object, message: object) -> None:
        nonlocal records
        records += 1

    wall, used = time.perf_counter(), time.process_time()
    with Client(Cluster(service_url)) as client:
        read(client, log_of(client, name, NAMESPACE), count)
    return records, (time.perf_counter() - wall) * 1e3, (time.process_time() - used) * 1e3


if __name__ == "__main__":
    found = [_read(*sys.argv[1:]) for _ in range(READINGS)]
    records, wall, used = (min(column) for column in zip(*found, strict=True))
    print(json.dumps({"records": records, "ms": round(wall, 1), "cpu_ms": round(used, 1)}))
