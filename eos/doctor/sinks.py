"""The sinks of a namespace, as their control logs tell: whose they are, how far they are, and what is unfinished."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eos.commit.control_log import Intent, LogView, Marker, OwnerRecord, Record
from eos.commit.control_topic import CONTROL, control_topic
from eos.commit.patience import Settings
from eos.commit.reading import oldest_needed, read_on, view_behind
from eos.errors import DamagedLog, InvalidInput, NetworkError, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import NAMESPACE


class Standing(StrEnum):
    """What a sink's log ends with."""

    NEW = "new"
    COMMITTED = "committed"
    UNFINISHED = "unfinished"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class SinkState:
    """A sink, as its control log tells.

    Attributes:
        name: the sink's.
        standing: "new": no batch was begun; "committed": the last one that was begun is; "unfinished": it is not, since
            it is being written, was aborted, or its commit is under way; "unreadable": see `problem`.
        query_id, run_id: of Spark, of the run that took the sink over last; None where the log doesn't say.
        batch_id: the newest committed batch; None where none is retained.
        rows: how many rows that batch has, over all topics.
        unfinished: what was begun after it.
        open: whether a coordinator has the unfinished transaction open; None where that was not asked.
        problem: why the log can't be read; None where it can.
    """

    name: str
    standing: Standing
    query_id: str | None = None
    run_id: str | None = None
    batch_id: int | None = None
    rows: int | None = None
    unfinished: Intent | None = None
    open: bool | None = None
    problem: str | None = None


def sinks(client: Client, namespace: str, admin: Admin | None = None) -> list[SinkState]:
    """Return the sinks of a "tenant/namespace", by name. One whose log can't be read is "unreadable".

    Args:
        admin: asked whether unfinished transactions are open.

    Raises InvalidInput for a malformed name, and what `Client.topics` raises.
    """
    if not NAMESPACE.fullmatch(namespace):
        raise InvalidInput(f"{namespace!r} is no namespace: write tenant/namespace, such as public/default")
    names = (topic.rpartition("/")[2] for topic in client.topics(namespace))
    found = []
    for name in sorted(name.removeprefix(CONTROL) for name in names if name.startswith(CONTROL)):
        try:
            found.append(sink(client, name, namespace, admin))
        except (DamagedLog, NetworkError) as error:
            found.append(SinkState(name, Standing.UNREADABLE, problem=str(error)))
    return found


def sink(client: Client, name: str, namespace: str, admin: Admin | None = None) -> SinkState:
    """Return one sink. Raises InvalidInput where there is none, and what reading its log raises."""
    view = read(client, log_of(client, name, namespace))
    newest, unfinished, owner = view.newest, view.unfinished, view.intent or view.owner
    standing = Standing.UNFINISHED if unfinished else Standing.COMMITTED if newest else Standing.NEW
    return SinkState(
        name,
        standing,
        None if owner is None else owner.query_id,
        None if owner is None else owner.run_id,
        None if newest is None else newest.batch_id,
        None if newest is None else sum(newest.rows.values()),
        unfinished,
        None if admin is None or unfinished is None else admin.transaction(unfinished.txn) is not None,
    )


def records(client: Client, name: str, namespace: str, last: int) -> list[Record]:
    """Return the last records of a sink's log, oldest first. Raises as `sink`."""
    kept = deque[Record](maxlen=last)
    read(client, log_of(client, name, namespace), kept.append)
    return list(kept)


def log_of(client: Client, name: str, namespace: str) -> str:
    """Return a sink's control topic. Raises InvalidInput where there is none in the "tenant/namespace"."""
    topic = control_topic(name, f"persistent://{namespace}/any")
    try:
        client.partitions(topic)
    except TopicMissing as error:
        raise InvalidInput(
            f'There is no sink "{name}" in {namespace}: it has no control topic there. Check the name, which is '
            "the option name= of eos.sink(), and give the namespace of its topic with --namespace."
        ) from error
    return topic


def read(client: Client, topic: str, each: Callable[[Record], None] = lambda record: None) -> LogView:
    """Fold a control log from the oldest record that its sink needs. Raises as `commit.reading.read_log`."""
    settings = Settings()
    view = view_behind(oldest_needed(client, topic, settings), settings)
    read_on(client, topic, settings, view, each=each)
    return view


def summary(one: SinkState) -> dict[str, Any]:
    """What `eos sinks --json` shows of a sink."""
    begun = one.unfinished
    return {
        "name": one.name,
        "standing": str(one.standing),
        "query_id": one.query_id,
        "run_id": one.run_id,
        "batch_id": one.batch_id,
        "rows": one.rows,
        "unfinished": None
        if begun is None
        else {"batch_id": begun.batch_id, "attempt": begun.attempt, "transaction": str(begun.txn), "open": one.open},
        "problem": one.problem,
    }


def plain(record: Record) -> dict[str, Any]:
    """What `eos show --json` shows of a record."""
    shown: dict[str, Any] = {
        "number": record.number,
        "kind": KINDS[type(record)],
        "query_id": record.query_id,
        "run_id": record.run_id,
    }
    if isinstance(record, OwnerRecord):
        return shown | {"coordinator": record.coordinator, "topic_epoch": record.topic_epoch}
    shown |= {
        "batch_id": record.batch_id,
        "attempt": record.attempt,
        "transaction": str(record.txn),
        "principal": record.principal,
    }
    if isinstance(record, Marker):
        shown |= {"rows": dict(record.rows), "bytes": dict(record.bytes)}
    return shown


KINDS = {OwnerRecord: "owner", Intent: "intent", Marker: "marker"}
