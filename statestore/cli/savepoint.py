"""`statestore savepoint …`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from eos.config import Cluster, Credentials, Tls
from statestore.cli import console
from statestore.cli.console import AsJson, HadoopOptions, parse_options
from statestore.errors import InvalidInput
from statestore.savepoints import bookkeeper, portable, topic
from statestore.savepoints.stream import Manifest
from statestore.savepoints.topic import TopicAddress, is_topic

typer_app = typer.Typer(
    name="savepoint",
    no_args_is_help=True,
    help="Named, immutable cuts of a running query's checkpoint; on BookKeeper without copying, or on a Pulsar topic.",
)

Token = Annotated[Path | None, typer.Option("--token-file", help="A file with a token for Pulsar.")]
Trust = Annotated[Path | None, typer.Option("--trust-certs", help="PEM file of authorities, for pulsar+ssl://.")]
SAVEPOINT = "The savepoint's name."
_TREE = "Any bk:// address in the tree, or a topic: pulsar://host:port/tenant/namespace/topic."


@typer_app.command()
def create(
    name: Annotated[str, typer.Argument(help=SAVEPOINT)],
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint; its query may run. bk:// unless --to is given.")],
    batch: Annotated[int | None, typer.Option(help="A committed batch. Default: the newest.")] = None,
    to: Annotated[str | None, typer.Option(help="Write it to this topic instead, as one transaction.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that the transaction may take.")] = portable.TRANSACTION_S,
    token_file: Token = None,
    trust_certs: Trust = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make a savepoint of a checkpoint at a committed batch."""
    options = parse_options(option)
    if to is None:
        savepoint = bookkeeper.create(name, checkpoint, batch=batch, options=options)
        said = f"{savepoint.files} files, {console.size(savepoint.size)}, in {savepoint.ledgers} ledgers"
        show(asdict(savepoint), as_json, f"Savepoint {name} holds batch {savepoint.batch}: {said}. Nothing was copied")
        return
    cluster = cluster_of(to, token_file, trust_certs)
    with bar(f"Writing {name}") as progress:
        manifest = portable.create(
            name,
            checkpoint,
            to,
            batch=batch,
            options=options,
            cluster=cluster,
            timeout_s=timeout,
            progress=progress,
        )
    said = f"{manifest.files} files, {console.size(manifest.size)}, in {manifest.messages} messages"
    show(asdict(manifest), as_json, f"Savepoint {name} of batch {manifest.batch} is on the topic: {said}")


@typer_app.command("list")
def list_(
    place: Annotated[str, typer.Argument(help=_TREE)],
    token_file: Token = None,
    trust_certs: Trust = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the savepoints of a tree, or on a topic."""
    if is_topic(place):
        _list_topic(place, cluster_of(place, token_file, trust_certs), as_json)
        return
    savepoints = bookkeeper.list_savepoints(place, parse_options(option))
    if as_json:
        console.show_json([asdict(savepoint) for savepoint in savepoints])
        return
    console.show_table(
        ["name", "state", "batch", "created (UTC)", "files", "size", "ledgers", "query", "checkpoint"],
        [
            (
                *(one.name, one.state, one.batch if one.batch >= 0 else "", console.moment(one.created_ms)),
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
    if is_topic(tree):
        raise InvalidInput(
            f"A savepoint on a topic goes with the topic's messages: delete the topic, or skip its messages on the "
            f"subscription {topic.HOLD}"
        )
    bookkeeper.delete(name, tree, parse_options(option))
    console.tell(f"Savepoint {name} is deleted")


def _list_topic(uri: str, cluster: Cluster, as_json: bool) -> None:
    found = topic.list_topic(cluster, TopicAddress.parse(uri).topic)
    if as_json:
        console.show_json(
            [{"name": name, "lacks": lacks, "manifest": asdict(one) if one else None} for one, name, lacks in found]
        )
        return
    console.show_table(
        ["name", "state", "batch", "created (UTC)", "files", "size", "query", "checkpoint"],
        [_row(name, lacks, one) for one, name, lacks in found],
        right=["batch", "files", "size"],
    )


def _row(name: str, lacks: str, one: Manifest | None) -> tuple[object, ...]:
    state = f"incomplete: {lacks}" if lacks else "ready"
    if one is None:
        return (name, state, *[""] * 6)
    return (
        name,
        state,
        one.batch,
        console.moment(one.created_ms),
        one.files,
        console.size(one.size),
        one.query,
        one.source,
    )


def cluster_of(uri: str, token_file: Path | None, trust_certs: Path | None) -> Cluster:
    """The cluster of a topic's address, with what tells it who we are."""
    credentials = Credentials() if token_file is None else Credentials("token", f"file:{token_file}")
    tls = Tls() if trust_certs is None else Tls(str(trust_certs))
    return Cluster(TopicAddress.parse(uri).service_url, credentials, tls)


def show(fields: dict[str, object], as_json: bool, line: str) -> None:
    """Print what was done: as JSON, or as a line for people."""
    if as_json:
        console.show_json(fields)
    else:
        console.tell(line)


@contextmanager
def bar(what: str) -> Iterator[topic.Progress]:
    """A bar on a terminal; silent elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
