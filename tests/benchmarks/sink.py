"""`make bench-sink`: the sink beside the official clients and the ceiling, on a Pulsar of its own.

    python -m tests.benchmarks.sink [--rows 1000000] [--rounds 5] [--batches 300] [--quick] [--out FILE]

Prints tables and writes every raw figure as JSON. docs/benchmarks.md says what is measured and how.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from eos.local import LocalPulsar
from tests.benchmarks import results
from tests.benchmarks.java_client import JavaClient
from tests.benchmarks.micro_batches import latency
from tests.benchmarks.plan import Plan
from tests.benchmarks.rows import FIXED, RANDOM, spark_session
from tests.benchmarks.table import show
from tests.benchmarks.throughput import compare
from tests.benchmarks.worker_memory import peaks
from tests.certificates import make_tls

OUT = Path("build/bench/sink.json")


def main(
    rows: int = Plan.rows,
    rounds: int = Plan.rounds,
    batches: int = Plan.batches,
    out: Path = OUT,
    quick: Annotated[bool, typer.Option(help="Two rounds of a third of the rows: to see that it works.")] = False,
) -> None:
    """Measure everything; takes some ten minutes."""
    console = Console()
    began = time.monotonic()

    def tell(line: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:6.0f} s[/dim]  {line}", highlight=False)

    found: results.Json = {"machine": results.machine()}
    tell("starting Pulsar")
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-") as folder,
        LocalPulsar(memory="2g", flags=(), tell=tell, settings=(tls := make_tls(Path(folder))).settings) as broker,
    ):
        plan = Plan(broker, tell, rows=rows, rounds=rounds, batches=batches, tls=tls, broker_pid=broker.pid)
        if quick:
            plan = replace(plan, rows=rows // 3, rounds=2, batches=50, warm_ups=1, memory_runs=1)
        with spark_session() as session:
            found |= measure(session, plan)
        found |= results.worker_memory(peaks(plan))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1))
    show(console, found)
    console.print(f"every figure: {out}")


def measure(session: SparkSession, plan: Plan) -> results.Json:
    """Return what this process can measure: throughput and latency."""
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-") as folder,
        JavaClient(Path(folder), plan.broker.service_url) as java,
    ):
        fixed, random = (compare(session, java, plan, case) for case in (FIXED, RANDOM))
    batches = latency(session, plan)
    return {
        **results.throughput(fixed),
        RANDOM.name: results.throughput(random),
        "batch_ms": results.batch_ms(batches),
    }


if __name__ == "__main__":
    typer.run(main)
