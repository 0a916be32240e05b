"""The state's results as tables, for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.benchmarks.large_file import RAW, READ, WRITE
from tests.benchmarks.results import Json
from tests.benchmarks.state_plan import BK, FEW, FILE, HDFS, MANY
from tests.benchmarks.state_results import AIMS, RAW_AIMS

LABELS = {FILE: "`file://`", BK: "`bk://`", HDFS: "`hdfs://`", RAW: "BookKeeper's client"}


@dataclass(frozen=True)
class Sheet:
    """A table of text.

    Attributes:
        title: a phrase.
        head: of each column; the first is that of the names.
        lines: as many cells each.
    """

    title: str
    head: tuple[str, ...]
    lines: list[tuple[str, ...]]


def sheets(found: Json) -> Iterator[Sheet]:
    """Return the tables of what was measured."""
    measured = [partitions for partitions in (FEW, MANY) if f"state_{partitions}" in found]
    for partitions in measured:
        yield _commits(partitions, found[f"state_{partitions}"])
    if measured:
        yield _costs(measured, found)
    if (rates := found.get("mb_per_s")) is not None:
        yield Sheet(
            "A large file, MB/s",
            ("", "written", "lowest to highest", "read", "lowest to highest"),
            [
                (LABELS[name], *(cell for verb in (WRITE, READ) for cell in _rate(rates[verb][name])))
                for name in rates[WRITE]
            ],
        )
    yield Sheet("Compared", ("bk:// to", "ratio", "aim"), list(_ratios(found)))


def show(console: Console, found: Json) -> None:
    """Print the tables."""
    for sheet in sheets(found):
        print_sheet(console, sheet)


def print_sheet(console: Console, sheet: Sheet) -> None:
    """Print one table, names without their Markdown."""
    table = Table(*sheet.head, title=sheet.title)
    for column in table.columns[1:]:
        column.justify = "right"
    for line in sheet.lines:
        table.add_row(*(cell.replace("`", "") for cell in line))
    console.print(table)


def _commits(partitions: int, figures: Json) -> Sheet:
    lines: list[tuple[str, ...]] = []
    for name, commit in figures["commit_ms"].items():
        rounds, restart = commit["p50_of_rounds"], figures["restart_s"][name]
        lines.append(
            (
                LABELS[name],
                f"{commit['p50']:,.0f}",
                f"{rounds['min']:,.0f} to {rounds['max']:,.0f}",
                f"{commit['p99']:,.0f}",
                f"{commit['wal_p50']:,.0f} + {commit['state_p50']:,.0f} + {commit['log_p50']:,.0f}",
                f"{figures['batch_ms'][name]:,.0f}",
                f"{restart['median']:.2f} ({restart['min']:.2f} to {restart['max']:.2f})",
            )
        )
    head = ("", "commit p50, ms", "of rounds", "p99", "offsets + state + commits", "batch p50, ms", "restart, s")
    return Sheet(f"{partitions} state partitions", head, lines)


def _costs(measured: Sequence[int], found: Json) -> Sheet:
    rows = {"ZooKeeper writes": "zookeeper_writes_per_batch", "new ledgers": "ledgers_per_batch"}
    return Sheet(
        "Cost of a batch on bk://",
        ("", *(f"{partitions} state partitions" for partitions in measured)),
        [
            (label, *(f"{found[f'state_{partitions}'][key]:g}" for partitions in measured))
            for label, key in rows.items()
        ],
    )


def _rate(rate: Json) -> tuple[str, str]:
    return f"{rate['median']:,.0f}", f"{rate['min']:,.0f} to {rate['max']:,.0f}"


def _ratios(found: Json) -> Iterator[tuple[str, ...]]:
    labels = {
        "hdfs_200": "`hdfs://`, commit p50 with 200 state partitions",
        "file_8": "`file://`, commit p50 with 8 state partitions",
        "raw_write": "BookKeeper's client, MB/s written",
        "raw_read": "BookKeeper's client, MB/s read",
    }
    for name, label in labels.items():
        if name in found["ratios"]:
            aim = f"≤ {AIMS[name]:g}" if name in AIMS else f"≥ {RAW_AIMS[name]:g}"
            yield label, f"{found['ratios'][name]:g}", aim
