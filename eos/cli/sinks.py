"""`eos sink list | show | verify`: which sinks there are, what a log says, whether readers find it.

`eos sink abort | skip | reset` change a sink: its dead driver's transaction ends, it goes on without the rows of a
batch that failed, or it starts over without a log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionOptions, ControlNamespace, connecting
from eos.cli.console import (
    FINDINGS,
    UNKNOWN,
    Yes,
    ask_first,
    count,
    print_json,
    print_table,
    show_progress,
    tell,
    time_of,
)
from eos.commit.control_topic import DEFAULT_NAMESPACE, abort_command

if TYPE_CHECKING:
    from eos.doctor.sinks import SinkState, WrittenBatch
    from eos.inspect.audit import Audit

LAST = 20
_OF_RUN = 8
"""Characters of a run's id that tell it from others; --json has all."""

app = typer.Typer(no_args_is_help=True, help="Show the state of sinks, and mend one.")

Name = Annotated[str, typer.Argument(help="The sink's name.")]


@app.command("list")
@connecting
def sinks(
    to: ConnectionOptions,
    namespace: ControlNamespace = DEFAULT_NAMESPACE,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each sink.")] = False,
) -> None:
    """List the sinks of a namespace with their query, newest committed batch, and unfinished batch.

    Unfinished: the last batch that was begun is not committed. The sink writes it now, or its driver died. With
    --admin-url the list says whether the transaction is open. Exit codes: 0, or 1 when a log cannot be read.
    """
    from eos.doctor.sinks import SinkStatus, summary
    from eos.doctor.sinks import sinks as listed
    from eos.pulsar.net.client import Client

    with Client(to.cluster) as client, to.admin() as admin:
        found = listed(client, namespace, admin)
    if not found:
        tell(f"{namespace} has no sinks, or does not exist.")
    if as_json:
        print_json([summary(one) for one in found])
    elif found:
        _list(found, namespace, asked=to.admin_url is not None)
    if any(one.status is SinkStatus.UNREADABLE for one in found):
        raise typer.Exit(FINDINGS)


@app.command()
@connecting
def show(
    to: ConnectionOptions,
    name: Name,
    namespace: ControlNamespace = DEFAULT_NAMESPACE,
    last: Annotated[int, typer.Option(min=1, help="Most records to show.")] = LAST,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each record.")] = False,
) -> None:
    """Show the last records of a sink's control log, which are owners, intents and markers.

    A marker shows that its batch is committed. An intent without one was aborted, or its batch is being written.
    """
    from eos.doctor.sinks import plain, records
    from eos.pulsar.net.client import Client

    with Client(to.cluster) as client:
        found = records(client, name, namespace, last)
    if as_json:
        print_json([plain(one) for one in found])
    else:
        _records(found)


@app.command()
@connecting
def verify(
    to: ConnectionOptions,
    name: Name,
    namespace: ControlNamespace = DEFAULT_NAMESPACE,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object.")] = False,
) -> None:
    """Count the rows that readers get of each committed batch and of aborted transactions.

    It counts the batches whose markers the log has (markers_kept). The query may run. With --admin-url it tells a lost
    ledger from aborted transactions. Exit codes: 0 as promised, 1 rows are missing, too many, or of an aborted
    transaction, 2 nothing was found out, 3 rows are missing that retention may have deleted, or the log is empty.
    """
    from eos.inspect.audit import AuditVerdict, audit, summary
    from eos.pulsar.net.client import Client

    with Client(to.cluster) as client, to.admin() as admin:
        found = audit(client, to.cluster, name, namespace, show_progress, admin)
    if as_json:
        print_json(summary(found))
    else:
        _compare(found)
    verdicts = {one.verdict for one in found.discrepancies}
    if verdicts - {AuditVerdict.UNKNOWN}:
        raise typer.Exit(FINDINGS)
    if verdicts or found.problem:
        raise typer.Exit(UNKNOWN)


@app.command()
@connecting
def abort(
    to: ConnectionOptions,
    name: Name,
    namespace: ControlNamespace = DEFAULT_NAMESPACE,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result, as a JSON object.")] = False,
) -> None:
    """Abort the open transaction of a sink's dead driver, so that readers need not wait for its time-out.

    The sink writes the batch again when its query starts, unless its commit was under way. Refused while a driver is
    connected to the sink's control topic. With --admin-url a superuser also aborts what another role has opened. Exit
    codes: 0, 1 you said no, 3 the state of the transaction cannot be known.
    """
    from eos.doctor import abort as aborting
    from eos.pulsar.net.client import Client

    with Client(to.cluster) as client, to.admin() as admin:
        found = aborting.abandoned(client, name, namespace)
        outcome = aborting.AbortOutcome.NOTHING_OPEN
        if found is not None:
            ask_first(f"Abort {found}?", yes)
            outcome = aborting.abort(client, found, admin)
    if as_json:
        print_json(aborting.summary(name, found, outcome))
    tell(aborting.told(name, found, outcome))
    if outcome in (aborting.AbortOutcome.HIDDEN, aborting.AbortOutcome.NOT_KNOWN):
        raise typer.Exit(UNKNOWN)


@app.command()
@connecting
def skip(
    to: ConnectionOptions,
    name: Name,
    batch: Annotated[int, typer.Option(min=0, help="The batch to skip.")],
    namespace: ControlNamespace = DEFAULT_NAMESPACE,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="The skipped batch, as a JSON object.")] = False,
) -> None:
    """Commit a batch that failed without its rows, so that the query can go on with the next one.

    Use it when the query's checkpoint has passed the batch and the sink refuses the next one. Refused while a driver
    owns the sink. Exit codes: 0, 1 you said no.
    """
    from eos.doctor import skip as skipping
    from eos.pulsar.net.client import Client

    with Client(to.cluster) as client, to.admin() as admin:
        found = skipping.look(client, name, batch, namespace, admin)
        tell(skipping.what_it_means(found, batch))
        ask_first(f'Skip batch {batch} of the sink "{name}"?', yes)
        skipping.skip(client, found, batch, namespace)
    if as_json:
        print_json({"sink": name, "batch_id": batch, "query_id": found.query_id})
    tell(f'Batch {batch} of the sink "{name}" is committed without rows.')


@app.command()
@connecting
def reset(
    to: ConnectionOptions,
    name: Name,
    namespace: ControlNamespace = DEFAULT_NAMESPACE,
    yes: Yes = False,
    even_if_open: Annotated[
        bool,
        typer.Option(
            "--even-if-open",
            help="Delete the log although it is not known whether the last transaction has ended. If it is open, "
            "readers wait for it until its time-out.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The deleted items, as a JSON object.")] = False,
) -> None:
    """Delete a sink's control log, so that a query with a new checkpoint can begin under its name.

    The sink's rows stay. The new query writes those again whose input it reads again. Needs --admin-url, and a role
    that may delete topics. Refused while a driver owns the sink, and where it is not known whether its last transaction
    has ended. Exit codes: 0, 1 you said no.
    """
    from eos.doctor import reset as resetting
    from eos.doctor.sinks import summary
    from eos.errors import InvalidInput
    from eos.pulsar.net.client import Client

    if to.admin_url is None:
        raise InvalidInput(
            "eos sink reset deletes a topic, by the admin API. Name it with --admin-url http://host:8080."
        )
    with to.needed_admin() as admin, Client(to.cluster) as client:
        found = resetting.look(client, admin, name, namespace)
        tell(resetting.what_it_means(found))
        ask_first(f'Start the sink "{name}" over?', yes)
        resetting.reset(client, admin, found, namespace, even_if_open=even_if_open)
    if as_json:
        print_json(summary(found))
    tell(f'The control log of the sink "{name}" is deleted.')


def _list(found: list[SinkState], namespace: str, *, asked: bool) -> None:
    """Print the sinks. Args: whether the admin API was asked for unfinished transactions."""
    not_told = ", not known whether open" if asked else ""
    lines = []
    for one in found:
        begun = one.unfinished
        rest = one.problem or ""
        if begun is not None:
            told = f". {one.problem}" if one.problem else not_told if one.open is None else ""
            known = "" if one.open is None else ", open" if one.open else ", ended"
            rest = f"batch {begun.batch_id}, attempt {begun.attempt}, transaction {begun.txn}{known}{told}"
        batch, rows = ("", "") if one.batch_id is None else (str(one.batch_id), f"{one.rows:,}")
        lines.append((one.name, one.status, batch, time_of(one.committed_ms), rows, one.query_id or "", rest))
    print_table(("sink", "status", "last batch", "committed at", "rows", "query", "unfinished"), lines)
    for one in found:
        if one.open:
            tell(
                f"{one.name}: a batch is being written, or its driver died and readers wait. If it died, start the "
                f"query again, or free the readers: {abort_command(one.name, namespace)}"
            )


def _records(found: list[WrittenBatch]) -> None:
    from eos.commit.control_log import Marker, OwnerRecord
    from eos.doctor.sinks import EMPTY_LOG, KINDS

    lines = []
    for written in found:
        one = written.record
        cells = ["", "", "", one.run_id[:_OF_RUN], ""]
        if not isinstance(one, OwnerRecord):
            cells[:3] = [str(one.batch_id), str(one.attempt), str(one.txn)]
        if isinstance(one, Marker):
            cells[4] = ", ".join(f"{topic.rpartition('/')[2]} {rows:,}" for topic, rows in one.rows.items())
        lines.append((str(one.number), time_of(written.at_ms), KINDS[type(one)], *cells))
    print_table(("number", "written at", "record", "batch", "attempt", "transaction", "run", "rows"), lines)
    tell(f"{count(len(found), 'record')}." if found else f"{EMPTY_LOG}.")


def _compare(found: Audit) -> None:
    if found.problem:
        tell(f"{found.problem}. So what readers should find is unknown.")
        return
    for missing in found.missing:
        tell(f"{missing[:1].upper()}{missing[1:]}.")
    if found.discrepancies:
        lines = [
            (str(one.batch_id), one.topic, f"{one.promised:,}", f"{one.found:,}", one.verdict, str(one.txn))
            for one in found.discrepancies
        ]
        print_table(("batch", "topic", "promised", "found", "verdict", "transaction"), lines)
    wrong = len({one.batch_id for one in found.discrepancies})
    told = f"{wrong} of them otherwise" if wrong else "as promised"
    sums = f"{count(found.rows, 'row')}, {count(len(found.topics), 'topic')}"
    tell(f"{count(found.batches, 'committed batch')}, {sums}: {told}.")
