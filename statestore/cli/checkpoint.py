"""`statestore snapshots` and `statestore verify`: what a checkpoint holds, and whether Spark could restart from it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from statestore.checkpoint.inspection import BATCHES, Progress
from statestore.checkpoint.listing import Snapshots, Store
from statestore.checkpoint.listing import snapshots as list_snapshots
from statestore.checkpoint.verification import Report
from statestore.checkpoint.verification import verify as verify_checkpoint
from statestore.cli import console
from statestore.cli.console import AsJson, HadoopOptions

Checkpoint = Annotated[str, typer.Argument(metavar="URI", help="A query's checkpoint, on any Hadoop file system.")]


def snapshots(uri: Checkpoint, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """List a query's batches, operators and partitions, with versions, sizes and ages of their state."""
    found = list_snapshots(uri, options=console.parse_options(option))
    if as_json:
        console.show_json(dataclasses.asdict(found) | {"bytes": found.bytes, "loadable": found.loadable})
        return
    _show(found)


def verify(
    uri: Checkpoint,
    batches: Annotated[int, typer.Option(help="How many of the last committed batches.")] = BATCHES,
    replicas: Annotated[bool, typer.Option(help="On bk://, read each entry from each bookie.")] = True,
    as_json: AsJson = False,
    option: HadoopOptions = None,
) -> None:
    """Read every file that the last batches need, and compare. Exit code 1 if there are errors."""
    with _progress() as progress:
        report = verify_checkpoint(
            uri, batches, options=console.parse_options(option), replicas=replicas, progress=progress
        )
    if as_json:
        console.show_json(dataclasses.asdict(report) | {"ok": report.ok})
    else:
        _tell(report)
    if not report.ok:
        sys.exit(console.FINDINGS)


COMMANDS = (snapshots, verify)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on standard error, if somebody is looking."""
    out = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("")
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


def _show(found: Snapshots) -> None:
    loadable = set(found.loadable)
    console.tell(f"query {found.query_id}, {len(found.batches)} batches, {console.size(found.bytes)} of state")
    console.show_table(
        ("batch", "planned", "committed", "age", "watermark", "state"),
        [
            (
                batch.id,
                console.moment(batch.planned_ms) if batch.planned_ms else "",
                console.moment(batch.committed_ms) if batch.committed else "no",
                _age(found.read_ms, batch.committed_ms or batch.planned_ms),
                console.moment(batch.watermark_ms) if batch.watermark_ms else "",
                "loadable" if batch.id in loadable and found.stores else "",
            )
            for batch in found.batches
        ],
        right=("batch", "age"),
    )
    console.show_table(
        ("operator", "name", "partition", "store", "versions", "snapshots", "files", "tables", "size", "age"),
        [_row(found, store) for store in found.stores],
        right=("partition", "files", "tables", "size", "age"),
    )


def _row(found: Snapshots, store: Store) -> tuple[object, ...]:
    return (
        store.operator,
        store.operator_name,
        store.partition,
        store.store,
        _runs(store.versions),
        _runs(store.snapshots),
        store.files,
        store.tables,
        console.size(store.bytes),
        _age(found.read_ms, store.written_ms),
    )


def _tell(report: Report) -> None:
    for finding in report.findings:
        where = f" (batches {_runs(finding.batches)})" if finding.batches else ""
        print(f"{finding.severity}: {finding.message}{where}")
        if finding.remedy:
            print(f"  {finding.remedy}")
    errors = sum(finding.severity == "error" for finding in report.findings)
    copies = "" if report.copies is None else f", {report.copies} copies of entries on bookies"
    console.tell(
        f"query {report.query_id}, batches {_runs(report.batches) or 'none'}: {report.files} files, "
        f"{console.size(report.bytes)}{copies}: {errors or 'no'} error{'s' if errors != 1 else ''}, "
        f"{len(report.findings) - errors or 'no'} warnings"
    )


def _runs(numbers: tuple[int, ...]) -> str:
    """1, 2, 3, 7 is "1-3 7"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _age(now_ms: int, then_ms: int) -> str:
    """How long ago, in the largest unit that has at least two."""
    seconds = max(now_ms - then_ms, 0) // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
