"""`make bench-source`: the source beside those of the official clients and the ceiling, on a Pulsar of its own.

    python -m tests.benchmarks.source [--rounds 5] [--quick] [--part large …] [--out build/bench/source.json]

Prints tables and writes every raw figure as JSON, after each part anew: what was measured before an interruption is
there, and parts that were measured one by one come together. docs/benchmarks.md says what is measured and how.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from eos.local import LocalPulsar
from tests.benchmarks import column_reads, one_row, results, segment_reads, source_results, typed_reads
from tests.benchmarks.readers import READY, compare, fill, make_known
from tests.benchmarks.rows import spark_session
from tests.benchmarks.source_plan import SourcePlan
from tests.benchmarks.source_table import show
from tests.benchmarks.state import merge, write

OUT = Path("build/bench/source.json")


class Part(StrEnum):
    """The parts that can be measured alone."""

    LARGE = "large"
    SMALL = "small"
    TYPED = "typed"
    COLUMNS = "columns"
    ONE_ROW = "one-row"
    SEGMENTS = "segments"


EVERY = tuple(Part)
Save = Callable[[results.Json], None]


def main(
    rounds: int = SourcePlan.rounds,
    out: Path = OUT,
    quick: Annotated[bool, typer.Option(help="Two rounds of few rows: figures to see that it works.")] = False,
    part: Annotated[list[Part] | None, typer.Option(help="Measure this alone. Repeatable.")] = None,
) -> None:
    """Measure everything; takes some twenty minutes."""
    console = Console()
    began = time.monotonic()

    def tell(line: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:6.0f} s[/dim]  {line}", highlight=False)

    found: results.Json = json.loads(out.read_text()) if part and out.exists() else {}
    found["machine"] = results.machine()

    def save(more: results.Json) -> None:
        merge(found, more)
        write(out, found)

    tell("starting Pulsar")
    with LocalPulsar(memory="2g", flags=(), tell=tell) as broker:
        plan = SourcePlan(broker, tell, rounds=rounds)
        if quick:
            large, small = replace(plan.large, rows=1_000_000), replace(plan.small, rows=200_000)
            plan = replace(plan, rounds=2, batches=10, large=large, small=small, typed_rows=200_000)
        with spark_session() as session, tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
            measure(session, plan, Path(folder), save, part or EVERY)
    show(console, found)
    console.print(f"every figure: {out}")


def measure(session: SparkSession, plan: SourcePlan, folder: Path, save: Save, parts: Sequence[Part] = EVERY) -> None:
    """Measure the parts; `save` gets the figures of each, and `folder` the classes of Java."""
    cases = {Part.LARGE: plan.large, Part.SMALL: plan.small}
    make_known(session, folder)
    topics = fill(plan, folder, *(case for part, case in cases.items() if part in parts))
    if Part.LARGE in parts:
        timed = compare(session, plan, plan.large, topics[plan.large.name], folder)
        save(source_results.reads(plan.large, timed))
    if Part.SMALL in parts:
        timed = compare(session, plan, plan.small, topics[plan.small.name], folder, without=(READY,))
        save(source_results.reads(plan.small, timed, "_small"))
    if Part.TYPED in parts:
        save(source_results.typed(typed_reads.compare(session, plan, folder)))
    if Part.COLUMNS in parts:
        save(source_results.columns(column_reads.compare(session, plan, folder)))
    if Part.ONE_ROW in parts:
        save(source_results.one_row(one_row.measure(session, plan)))
    if Part.SEGMENTS in parts:
        save(source_results.segments(segment_reads.compare(session, plan)))


if __name__ == "__main__":
    typer.run(main)
