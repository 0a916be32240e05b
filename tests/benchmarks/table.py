"""Shows the results on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tests.benchmarks.results import AIMS, Json
from tests.benchmarks.rows import FIXED, RANDOM

LABELS = {
    "this_sink": "this sink, one transaction",
    "pulsar_client": "foreachPartition + pulsar-client, no transaction",
    "java_txn": "Java client, one transaction, no Spark",
    "ceiling": "mapInArrow that only counts",
}


def show(console: Console, found: Json) -> None:
    """Print the tables of everything measured."""
    for case, part in ((FIXED, found), (RANDOM, found[RANDOM.name])):
        console.print(_throughput(case.name.replace("_", " "), part))
    console.print(_others(found))


def _throughput(title: str, part: Json) -> Table:
    table = Table("", "rows/s", "lowest to highest", "sink : this", "aim", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, label in LABELS.items():
        rate = part["rows_per_s"][name]
        ratio = part["ratios"].get(name)
        table.add_row(
            label,
            f"{rate['median']:,.0f}",
            f"{rate['min']:,.0f} to {rate['max']:,.0f}",
            "" if ratio is None else _judged(ratio, ratio >= AIMS[name]),
            "" if ratio is None else f"at least {AIMS[name]:g}",
        )
    return table


def other_figures(found: Json) -> list[tuple[str, float, float | None]]:
    """Return what is measured besides throughput: label, figure, and the aim it should not exceed."""
    batch = found["batch_ms"]
    return [
        ("ms added to one row by the driver over noop, p50", batch["p50"], 25.0),
        ("the same, p99", batch["p99"], None),
        ("ms added to one row by tasks over counting, p50", batch["task_p50_over_count"], 25.0),
        ("added with 64 topic partitions : with 1, one row", batch["partitions_64_over_1"], 2.0),
        ("the same, all partitions written", batch["partitions_64_over_1_all_written"], None),
        ("peak memory of a worker, ten times the rows : once", found["worker_rss_10m_over_1m"], 1.2),
    ]


def _others(found: Json) -> Table:
    table = Table("", "measured", "aim", title="small micro-batches, and memory")
    table.columns[1].justify = table.columns[2].justify = "right"
    for label, value, aim in other_figures(found):
        measured = f"{value:g}" if aim is None else _judged(value, value <= aim)
        table.add_row(label, measured, "" if aim is None else f"at most {aim:g}")
    return table


def _judged(value: float, good: bool) -> str:
    return f"[{'green' if good else 'red'}]{value:g}"
