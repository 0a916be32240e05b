"""Two hours of micro-batches on a Pulsar of their own, and what grows: `make soak-growth`.

    python -m tests.soak.growth [--minutes 120] [--every 10] [--seconds 3] [--leak] [--out build/growth.json]

A stateful query with its state on `bk://` writes a batch every few seconds. This process looks at the driver, its JVM,
its Python workers and the broker from outside, and reads the control log as a takeover does. All readings are in the
file after each of them. Exit codes: 0 nothing grows and the output is as promised, 1 something does or is not, 2 the
run came to no end.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from eos.local import LocalPulsar
from tests.benchmarks.state import write
from tests.child_process import ChildProcess, python
from tests.conftest import create_topic
from tests.soak.growth import log_reading, readings
from tests.soak.growth.verdict import Verdict, judge

OUT = Path("build/growth.json")
NAME = "growth"
SOON_FULL = {"skipListSizeLimit": 2**20}
"""What a bookie holds on the heap until it writes it to disk: 64 MiB by default, which two hours do not fill.

Before the first writing it has no file of any ledger open, after it one for each: that must be over with the warm-up.
"""

_FIRST_BATCH_S = 300.0


class Run:
    """A driver at work, and what it holds."""

    def __init__(self, pulsar: LocalPulsar, folder: Path, seconds: float, leak: bool) -> None:
        self.topic = create_topic(pulsar.admin_url, "growth", 2)
        self._pulsar, self._batches = pulsar, folder / "batches.jsonl"
        self._batches.touch()
        self._told = 0
        given = {
            "service_url": pulsar.service_url,
            "topic": self.topic,
            "name": NAME,
            "checkpoint": f"bk://{pulsar.zookeeper}/growth",
            "seconds": seconds,
            "batches": str(self._batches),
            "leak": leak,
        }
        self.driver = ChildProcess(python("tests.soak.growth.driver", given), folder / "driver.log", takes_input=True)

    def await_first_batch(self) -> None:
        """Wait until a batch is done."""
        self.driver.until(self.lines, "no batch was done", _FIRST_BATCH_S)

    def check(self) -> None:
        """Raise RuntimeError when the driver is gone."""
        if not self.driver.alive:
            raise RuntimeError(f"the driver ended with {self.driver.wait()}:\n{self.driver.tail()}")

    def lines(self) -> list[dict[str, Any]]:
        """What it has told of its batches so far."""
        whole = self._batches.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def read(self, minute: float) -> dict[str, float]:
        """Read all figures now."""
        self.check()
        told = self.lines()
        new, self._told = told[self._told :], len(told)
        times = [one["ms"] for one in new] or [0]
        jvm, workers = readings.below(self.driver.pid)
        broker = self._pulsar.pid
        assert broker is not None
        rooms: dict[str, readings.Figures] = {
            "driver": readings.of_process(self.driver.pid),
            "jvm": readings.of_process(jvm),
            "workers": readings.of_workers(workers),
            "broker": readings.of_process(broker),
            "control_log": log_reading.measure(self._pulsar.service_url, NAME),
            "batches": {
                "done": len(told),
                "median_ms": round(median(times)),
                "fast_ms": round(quantiles([*times, times[0]], n=10)[0]),
                "without_sink": sum(not one["sinks"] for one in told),
            },
        }

        def floor() -> readings.Figures:
            heaps = {"jvm": readings.collected(jvm), "broker": readings.collected(broker)}
            return _flat(heaps) | {"zookeeper.nodes": nodes(self._pulsar.zookeeper)}

        return {"minute": round(minute, 2), **_flat(rooms), **readings.least(floor)}

    def end(self) -> int:
        """Stop the query; return the driver's exit code."""
        self.driver.stdin.close()
        with suppress(AssertionError):  # it is killed then
            return self.driver.wait(60)
        return -signal.SIGKILL

    def verified(self) -> dict[str, Any]:
        """What `eos sink verify --json` says of the sink."""
        line = python("eos", "sink", "verify", NAME, "--json", "--service-url", self._pulsar.service_url)
        done = subprocess.run(line, capture_output=True, text=True)
        return {"exit_code": done.returncode, "said": json.loads(done.stdout) if done.stdout else done.stderr}


def _flat(rooms: dict[str, readings.Figures]) -> readings.Figures:
    return {f"{room}.{name}": value for room, found in rooms.items() for name, value in found.items()}


def nodes(zookeeper: str) -> int:
    """How many nodes a ZooKeeper has: those of bk:// among them."""
    host, _, port = zookeeper.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"srvr")
        said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    found = re.search(r"^Node count: (\d+)$", said, re.MULTILINE)
    assert found is not None, said
    return int(found[1])


def main(
    minutes: Annotated[float, typer.Option(help="How long, from the first batch on.")] = 120.0,
    every: Annotated[float, typer.Option(help="Minutes between two readings.")] = 10.0,
    seconds: Annotated[float, typer.Option(help="Between the beginnings of two batches.")] = 3.0,
    leak: Annotated[bool, typer.Option("--leak", help="Have the driver leak, to see that it is found.")] = False,
    out: Path = OUT,
) -> None:
    """Run a query, read what it holds, and judge what grows."""
    console = Console(highlight=False, width=140)
    found: dict[str, Any] = {"minutes": minutes, "every": every, "seconds": seconds, "leak": leak, "complete": False}
    found |= {"readings": [], "pids": {"this": os.getpid()}}
    write(out, found)
    with (
        tempfile.TemporaryDirectory(prefix="growth-") as folder,
        LocalPulsar(memory="512m", settings=SOON_FULL) as pulsar,
    ):
        run = Run(pulsar, Path(folder), seconds, leak)
        try:
            run.await_first_batch()
            jvm, _ = readings.below(run.driver.pid)
            found["pids"] |= {"driver": run.driver.pid, "jvm": jvm, "broker": pulsar.pid}
            began = time.monotonic()
            for number in range(int(minutes / every) + 1):
                while (left := began + number * every * 60 - time.monotonic()) > 0:
                    time.sleep(min(left, 5.0))
                    run.check()
                found["readings"].append(run.read((time.monotonic() - began) / 60))
                write(out, found)
                console.print(one_line(found["readings"][-1]))
            found["driver_exit_code"] = run.end()
            found["verify"] = run.verified()
        except (RuntimeError, AssertionError, subprocess.CalledProcessError) as error:
            console.print(f"the run came to no end: {error}", markup=False)
            raise typer.Exit(2) from error
        finally:
            run.driver.kill()
    verdicts = judge(found["readings"], minutes)
    as_promised = found["verify"]["exit_code"] == 0 and found["driver_exit_code"] == 0
    found |= {"verdicts": [asdict(one) | {"grows": one.grows} for one in verdicts], "complete": True}
    write(out, found)
    show(console, found["readings"], verdicts)
    growing = [one.name for one in verdicts if one.grows]
    console.print(f"{'grows: ' + ', '.join(growing) if growing else 'nothing grows'}; every figure: {out}")
    if not as_promised:
        console.print(f"the output is not as promised: {found['verify']}, driver {found['driver_exit_code']}")
    raise typer.Exit(1 if growing or not as_promised else 0)


def one_line(reading: dict[str, float]) -> str:
    """Tell of a reading while the run goes on."""
    shown = ("batches.done", "batches.median_ms", "driver.rss_mib", "jvm.rss_mib", "jvm.heap_mib", "broker.heap_mib")
    more = ("driver.threads", "jvm.threads", "driver.fds", "jvm.fds", "control_log.records", "control_log.ms")
    return f"minute {reading['minute']:.1f}: " + ", ".join(f"{name} {reading[name]:g}" for name in (*shown, *more))


def show(console: Console, taken: list[dict[str, float]], verdicts: list[Verdict]) -> None:
    """Print each figure's first, middle and last reading, what it grows by, and what it may."""
    table = Table("figure", "first", "median", "last", "an hour", "limit", "verdict")
    for one in verdicts:
        limit = "" if one.limit is None else f"{one.limit:.1f}"
        said = "" if one.limit is None else "grows" if one.grows else "steady"
        ends = (f"{taken[0][one.name]:g}", f"{one.middle:g}", f"{taken[-1][one.name]:g}")
        table.add_row(one.name, *ends, f"{one.an_hour:+.1f}", limit, said)
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
