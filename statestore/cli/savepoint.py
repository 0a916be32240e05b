"""`statestore savepoint …`."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionSettings, connecting_later
from eos.config import Cluster
from statestore.cli import console
from statestore.cli.options import SAVEPOINT, AsJson, HadoopOptions, Operators, cluster_of, parse_options
from statestore.defaults import TRANSACTION_S
from statestore.errors import InvalidInput, StateStoreError
from statestore.json_fields import to_json

if TYPE_CHECKING:
    from statestore.savepoints.periodic import Schedule
    from statestore.savepoints.topic import Listed

typer_app = typer.Typer(
    name="savepoint",
    no_args_is_help=True,
    help="Named cuts of a running query's checkpoint, on BookKeeper without copying, or on a Pulsar topic.",
)

_TREE = "Any bk:// address in the tree, or a topic: pulsar://host:port/tenant/namespace/topic."


@typer_app.command()
@connecting_later
def create(
    name: Annotated[str, typer.Argument(help=SAVEPOINT)],
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint, whose query may run. It is on bk:// unless --to is given.")
    ],
    batch_id: Annotated[int | None, typer.Option("--batch", help="A committed batch, by default the newest.")] = None,
    to: Annotated[str | None, typer.Option(help="Write it to this topic instead, as one transaction.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that the transaction may take.")] = TRANSACTION_S,
    operators: Operators = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
    *,
    by: ConnectionSettings,
) -> None:
    """Make a savepoint of a checkpoint at a committed batch."""
    from statestore.savepoints import bookkeeper, pulsar_topic

    options = parse_options(option)
    if to is None:
        savepoint = bookkeeper.create(name, checkpoint, batch_id=batch_id, operators=operators, options=options)
        said = f"{console.count(savepoint.files, 'file')}, {console.size(savepoint.size)}"
        said = f"{said}, in {console.count(savepoint.ledgers, 'ledger')}. Nothing was copied"
        console.show(to_json(savepoint), as_json, f"Savepoint {name} holds batch {savepoint.batch_id}: {said}")
        return
    cluster = cluster_of(to, by)
    with console.bar(f"Writing {name}") as show:
        manifest = pulsar_topic.create(
            name,
            checkpoint,
            to,
            batch_id=batch_id,
            operators=operators,
            options=options,
            cluster=cluster,
            timeout_s=timeout,
            progress=console.bytes_of(show),
        )
    said = f"{console.count(manifest.files, 'file')}, {console.size(manifest.size)}"
    said = f"{said}, in {console.count(manifest.messages, 'message')}"
    console.show(to_json(manifest), as_json, f"Savepoint {name} of batch {manifest.batch_id} is on the topic: {said}")


@typer_app.command()
def every(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint, bk://…, whose query may run.")],
    minutes: Annotated[float, typer.Option(help="Between two savepoints.")] = 30.0,
    keep: Annotated[int, typer.Option(help="How many to keep. An older one is deleted when a newer one is ready.")] = 5,
    prefix: Annotated[str, typer.Option(help="Of their names, PREFIX-<query>-<moment, UTC>. Others stay.")] = "every",
    once: Annotated[bool, typer.Option("--once", help="One round, for cron.")] = False,
    operators: Operators = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make a savepoint of a checkpoint every so many minutes, until you stop it, and keep the newest few.

    A failure is shown, and the next round tries again. With --once the exit code is 2.
    """
    from statestore.savepoints.periodic import Schedule, check_minutes

    check_minutes("--minutes", minutes)
    schedule = Schedule(checkpoint, keep, prefix, parse_options(option), operators=operators)
    if once:
        _round(schedule, as_json)
        return
    schedule.check()
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            try:
                _round(schedule, as_json)
            except StateStoreError as error:  # also that there is no checkpoint, or no committed batch yet
                console.tell(f"No savepoint was made: {error}")
            time.sleep(minutes * 60)


def _round(schedule: Schedule, as_json: bool) -> None:
    done = schedule.run_once()
    for failure in done.failures:
        console.tell(failure)
    deleted = f"; deleted: {', '.join(done.deleted)}" if done.deleted else ""
    if done.made is None:
        said = f"Nothing was committed since the newest savepoint{deleted}"
    else:
        said = f"Savepoint {done.made.name} holds batch {done.made.batch_id}{deleted}"
    console.show(to_json(done), as_json, said)


@typer_app.command("list")
@connecting_later
def list_(
    place: Annotated[str, typer.Argument(help=_TREE)],
    option: HadoopOptions = None,
    as_json: AsJson = False,
    *,
    by: ConnectionSettings,
) -> None:
    """List the savepoints of a tree, or on a topic."""
    from statestore.savepoints import bookkeeper
    from statestore.savepoints.topic import is_topic

    if is_topic(place):
        _list_topic(place, cluster_of(place, by), as_json)
        return
    savepoints = bookkeeper.list_savepoints(place, options=parse_options(option))
    if as_json:
        console.show_json([to_json(savepoint) for savepoint in savepoints])
        return
    console.print_table(
        ["name", "state", "batch", "created", "files", "size", "ledgers", "query", "checkpoint"],
        [
            (
                *(one.name, one.state, one.batch_id if one.batch_id >= 0 else "", console.time_of(one.created_ms)),
                *(one.files, console.size(one.size), one.ledgers, one.query, one.source),
            )
            for one in savepoints
        ],
        right=["batch", "files", "size", "ledgers"],
    )


@typer_app.command()
def delete(
    name: Annotated[str, typer.Argument(help=SAVEPOINT)],
    tree: Annotated[str, typer.Argument(help="Any bk:// address in its tree.")],
    option: HadoopOptions = None,
) -> None:
    """Delete a savepoint. Ledgers that nothing else needs are freed later, by the sweeper or `statestore gc`."""
    from statestore.savepoints import bookkeeper
    from statestore.savepoints.topic import HOLD, is_topic

    if is_topic(tree):
        raise InvalidInput(
            f"A savepoint on a topic goes with the topic's messages. Delete the topic, or skip its messages on the "
            f"subscription {HOLD}"
        )
    bookkeeper.delete(name, tree, options=parse_options(option))
    console.tell(f"Savepoint {name} is deleted")


def _list_topic(uri: str, cluster: Cluster, as_json: bool) -> None:
    from statestore.savepoints.topic import TopicAddress, list_topic

    found = list_topic(cluster, TopicAddress.parse(uri).topic)
    if as_json:
        console.show_json(
            [
                {
                    "name": one.name,
                    "condition": one.condition,
                    "lacks": one.lacks,
                    "manifest": to_json(one.manifest) if one.manifest else None,
                }
                for one in found
            ]
        )
        return
    console.print_table(
        ["name", "state", "batch", "created", "files", "size", "query", "checkpoint"],
        [_row(one) for one in found],
        right=["batch", "files", "size"],
    )


def _row(listed: Listed) -> tuple[object, ...]:
    state = f"{listed.condition}: {listed.lacks}" if listed.lacks else listed.condition
    one = listed.manifest
    if one is None:
        return (listed.name, state, *[""] * 6)
    return (
        listed.name,
        state,
        one.batch_id,
        console.time_of(one.created_ms),
        one.files,
        console.size(one.size),
        one.query,
        one.source,
    )
