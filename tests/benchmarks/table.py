"""Shows the results on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from tests.benchmarks.results import AIMS, CPU_AIMS, Json
from tests.benchmarks.rows import FIXED, RANDOM

LABELS = {
    "this_sink": "this sink, one transaction",
    "pulsar_client": "foreachPartition + pulsar-client, no transaction",
    "tls": "this sink over TLS",
    "metrics": "this sink with metrics for Prometheus",
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
    for name, ratio, *cells in lines_of(part):
        good = ratio and (float(ratio) >= AIMS[name][1] if AIMS[name][0] == "≥" else float(ratio) <= AIMS[name][1])
        table.add_row(*cells[:-1], _judged(float(ratio), bool(good)) if ratio else "", cells[-1])
    return table


def lines_of(part: Json) -> Iterator[tuple[str, ...]]:
    """Yield the contenders of one kind of rows: name, ratio; label, rows/s, their spread, and the aim of the ratio."""
    for name, label in LABELS.items():
        if name in part["rows_per_s"]:
            rate, ratio = part["rows_per_s"][name], part["ratios"].get(name)
            aim = f"{AIMS[name][0]} {AIMS[name][1]:g}" if name in AIMS else ""
            spread = f"{rate['min']:,.0f} to {rate['max']:,.0f}"
            yield name, "" if ratio is None else f"{ratio:g}", label, f"{rate['median']:,.0f}", spread, aim


def other_figures(found: Json) -> list[tuple[str, float, float | None]]:
    """Return what is measured besides throughput: label, figure, and the aim it should not exceed."""
    batch, cpu = found["batch_ms"], found["cpu"]
    return [
        ("CPU seconds a million rows, the sink's over counting's", cpu["sink_over_counting"], None),
        ("the same, as a part of the Java client's", cpu["ratios"]["java"], CPU_AIMS["java"][1]),
        ("the same, as a part of `pulsar-client`'s", cpu["ratios"]["pulsar_client"], CPU_AIMS["pulsar_client"][1]),
        *(
            [("the sink's with metrics for Prometheus : without", cpu["ratios"]["metrics"], CPU_AIMS["metrics"][1])]
            if "metrics" in cpu["ratios"]
            else []
        ),
        *([("CPU seconds of broker and bookie in the sink's turns", cpu["broker"], None)] if "broker" in cpu else []),
        ("ms added to one row by the driver over noop, p50", batch["p50"], 25.0),
        ("the same, p99", batch["p99"], None),
        ("ms added to one row by tasks over counting, p50", batch["task_p50_over_count"], 25.0),
        ("added with 64 topic partitions : with 1, one row", batch["partitions_64_over_1"], 2.0),
        ("the same, all partitions written", batch["partitions_64_over_1_all_written"], None),
        ("peak memory of a worker, ten times the rows : once", found["worker_rss_10m_over_1m"], 1.2),
    ]


def _others(found: Json) -> Table:
    table = Table("", "measured", "aim", title="CPU, small micro-batches, and memory")
    table.columns[1].justify = table.columns[2].justify = "right"
    for label, value, aim in other_figures(found):
        measured = f"{value:g}" if aim is None else _judged(value, value <= aim)
        table.add_row(label.replace("`", ""), measured, "" if aim is None else f"at most {aim:g}")
    return table


def _judged(value: float, good: bool) -> str:
    return f"[{'green' if good else 'red'}]{value:g}"
