"""`make bench-state`: Spark's state on `bk://`, beside `file://` and an HDFS, each of its own on this machine.

    python -m tests.benchmarks.state [--rounds 5] [--quick] [--no-hdfs] [--out build/bench/state.json]

Prints tables and writes every raw figure as JSON, after each round anew: what was measured before an interruption is
there. docs/benchmarks.md says what is measured and how.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from eos.local import LocalPulsar
from eos.local.places import Tell
from tests.benchmarks import results, state_results
from tests.benchmarks.large_file import compare
from tests.benchmarks.rows import spark_session
from tests.benchmarks.state_plan import BK, FEW, FILE, HDFS, MANY, StatePlan
from tests.benchmarks.state_table import show
from tests.benchmarks.stateful import MAINTENANCE, Counters, Turn, take_turn
from tests.hdfs import HADOOP_VERSION, SingleNodeHdfs

OUT = Path("build/bench/state.json")
# As Pulsar ships BookKeeper; ZooKeeper syncs its log by default.
DURABLE = {"journalSyncData": True}
# One copy of everything, as one DataNode writes it.
OPTIONS = {
    "fs.bk.ensemble": "1",
    "fs.bk.write-quorum": "1",
    "fs.bk.ack-quorum": "1",
    "dfs.replication": "1",
}
Save = Callable[[results.Json], None]


def main(
    rounds: int = StatePlan.rounds,
    out: Path = OUT,
    hdfs: Annotated[bool, typer.Option(help="Measure HDFS too.")] = True,
    quick: Annotated[bool, typer.Option(help="One round of few batches: figures to see that it works.")] = False,
) -> None:
    """Measure everything; takes some ten minutes."""
    console = Console()
    began = time.monotonic()

    def tell(line: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:6.0f} s[/dim]  {line}", highlight=False)

    found: results.Json = {"machine": results.machine() | {"hadoop": HADOOP_VERSION}, "complete": False}

    def save(more: results.Json) -> None:
        merge(found, more)
        write(out, found)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        plan = begin(stack, folder, tell, hdfs)
        plan = replace(plan, rounds=rounds)
        if quick:
            plan = replace(plan, rounds=1, warm_ups=1, batches={FEW: 4, MANY: 2}, file_blocks=32)
        settings = {f"spark.hadoop.{name}": value for name, value in OPTIONS.items()} | MAINTENANCE
        save(state_results.large_file(compare(folder, plan, OPTIONS)))
        session = stack.enter_context(spark_session(settings))
        session.sparkContext.setLogLevel("OFF")  # a query that is stopped in the middle of a batch complains at length
        measure(session, plan, save)
    save({"complete": True})
    show(console, found)
    console.print(f"every figure: {out}")


def begin(stack: ExitStack, folder: Path, tell: Tell, with_hdfs: bool) -> StatePlan:
    """Start the servers, to be stopped by `stack`; return a plan for a full run."""
    tell("starting Pulsar, with a bookie and ZooKeeper")
    pulsar = stack.enter_context(LocalPulsar(settings=DURABLE, flags=(), tell=tell))
    roots = {FILE: f"file://{folder}/files", BK: f"bk://{pulsar.zookeeper}/benchmark"}
    if with_hdfs:
        tell("starting HDFS")
        (folder / HDFS).mkdir()
        roots[HDFS] = f"{stack.enter_context(SingleNodeHdfs(folder / HDFS, tell)).uri}/benchmark"
    return StatePlan(roots, pulsar.zookeeper, tell)


def measure(session: SparkSession, plan: StatePlan, save: Save) -> None:
    """Give each file system its turns; `save` gets all figures so far after each round."""
    turns: dict[int, dict[str, list[Turn]]] = {
        partitions: {name: [] for name in plan.roots} for partitions in plan.batches
    }
    counters = Counters(plan.zookeeper)
    for number in range(plan.warm_ups + plan.rounds):
        counts = number >= plan.warm_ups
        title = f"round {number - plan.warm_ups + 1}/{plan.rounds}" if counts else "warming up"
        for partitions, taken in turns.items():
            for name in plan.turn(number):
                turn = take_turn(session, plan, counters, name, partitions)
                if counts:
                    taken[name].append(turn)
                middle = state_results.p50([turn])
                plan.tell(
                    f"{partitions} state partitions: {title}: {name}: commit {middle:,.0f} ms at the median, "
                    f"first one {turn.restart_s:.1f} s after the start"
                )
        if counts:
            save(state_results.stateful(turns))


def merge(found: results.Json, more: results.Json) -> None:
    """Put figures to those that are there, a dictionary into one of the same name."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            merge(found[key], value)
        else:
            found[key] = value


def write(out: Path, found: results.Json) -> None:
    """Replace the file as a whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(found, indent=1))
    os.replace(unfinished, out)


if __name__ == "__main__":
    typer.run(main)
