"""`statestore snapshots` and `statestore verify`: what a checkpoint holds, and whether Spark could restart from it."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from statestore.cli import console
from statestore.cli.options import AsJson, HadoopOptions, Operators, parse_options
from statestore.defaults import BATCHES

if TYPE_CHECKING:
    from statestore.checkpoint.listing import Snapshots, StoreVersions
    from statestore.checkpoint.verification import VerificationReport

Checkpoint = Annotated[str, typer.Argument(metavar="URI", help="A query's checkpoint, on any Hadoop file system.")]


def snapshots(uri: Checkpoint, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """List a query's batches, operators and partitions, with versions, sizes and ages of their state."""
    from statestore.checkpoint.listing import snapshots as list_snapshots

    found = list_snapshots(uri, options=parse_options(option))
    if as_json:
        console.show_json(dataclasses.asdict(found) | {"bytes": found.bytes, "loadable": found.loadable})
        return
    _show(found)


def verify(
    uri: Checkpoint,
    batches: Annotated[int, typer.Option(help="How many of the last committed batches.")] = BATCHES,
    replicas: Annotated[bool, typer.Option(help="On bk://, read each entry from each bookie.")] = True,
    stateful: Annotated[
        bool | None, typer.Option("--stateful/--stateless", help="Whether the query keeps state, if you know.")
    ] = None,
    operators: Operators = None,
    as_json: AsJson = False,
    option: HadoopOptions = None,
) -> None:
    """Find out whether Spark can resume from a checkpoint, by reading all that it needs.

    Exit code 1 if it would not, 3 if the checkpoint doesn't tell.
    """
    from statestore.checkpoint.verification import verify as verify_checkpoint

    with console.bar() as show:

        def progress(done: int, total: int, what: str) -> None:
            show(done, total, f"{done}/{total} {what}")

        report = verify_checkpoint(
            uri,
            batches,
            options=parse_options(option),
            replicas=replicas,
            stateful=stateful,
            operators=operators,
            progress=progress,
        )
    if as_json:
        console.show_json(dataclasses.asdict(report) | {"ok": report.ok, "answer": report.answer})
    else:
        _tell(report)
    sys.exit(_CODES[report.answer])


_CODES = {"yes": 0, "no": console.FINDINGS, "unknown": console.UNKNOWN}
COMMANDS = (snapshots, verify)


def _show(found: Snapshots) -> None:
    loadable = set(found.loadable)
    batches = console.count(len(found.batches), "batch")
    console.tell(f"query {found.query_id}, {batches}, {console.size(found.bytes)} of state")
    console.print_table(
        ("batch", "planned", "committed", "age", "watermark", "state"),
        [
            (
                batch.id,
                console.time_of(batch.planned_ms or None),
                console.time_of(batch.committed_ms or None) or ("yes" if batch.committed else "no"),
                console.age(found.read_ms, batch.committed_ms or batch.planned_ms),
                console.time_of(batch.watermark_ms or None),
                "loadable" if batch.id in loadable and found.stores else "",
            )
            for batch in found.batches
        ],
        right=("batch", "age"),
    )
    console.print_table(
        ("operator", "name", "partition", "store", "versions", "snapshots", "files", "tables", "size", "age"),
        [_row(found, store) for store in found.stores],
        right=("partition", "files", "tables", "size", "age"),
    )


def _row(found: Snapshots, store: StoreVersions) -> tuple[object, ...]:
    return (
        store.operator,
        store.operator_name,
        store.partition,
        store.store,
        console.runs(store.versions),
        console.runs(store.snapshots),
        store.files,
        store.tables,
        console.size(store.bytes),
        console.age(found.read_ms, store.written_ms),
    )


def _tell(report: VerificationReport) -> None:
    for finding in report.findings:
        where = f" (batches {console.runs(finding.batches)})" if finding.batches else ""
        console.print_line(f"{finding.severity}: {finding.message}{where}")
        if finding.remedy:
            console.print_line(f"  {finding.remedy}")
    errors = sum(finding.severity == "error" for finding in report.findings)
    copies = "" if report.copies is None else f", {report.copies} copies of entries on bookies"
    warnings = sum(finding.severity == "warning" for finding in report.findings)
    found = f"{console.count(errors, 'error')}, {console.count(warnings, 'warning')}"
    found += "; whether Spark would go on is not known" if report.answer == "unknown" else ""
    console.tell(
        f"query {report.query_id}, batches {console.runs(report.batches) or 'none'}: "
        f"{console.count(report.files, 'file')}, {console.size(report.bytes)}{copies}: {found}"
    )
