"""The sinks of a namespace, as their control logs tell: whose they are, how far they are, and what is unfinished."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from eos.commit.control_log import WAYS_OUT, Intent, LogView, Marker, OwnerRecord, Record
from eos.commit.control_topic import CONTROL, control_topic_in
from eos.commit.log_reader import Each, oldest_needed, read_on, view_behind
from eos.commit.ports import MessagePort
from eos.commit.retry import ONE_READ
from eos.doctor.traces import hides_a_part
from eos.errors import DamagedLog, EosError, InvalidInput, NetworkError, NewerVersion, Refused, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import check_namespace
from eos.pulsar.wire.txn import TxnId

EMPTY_LOG: Final = (
    "The control log holds no record. Either the sink has never begun a batch, or its records were deleted, by a "
    "message TTL, a backlog quota, a command, or with the topic. Which of these is so cannot be known from the log"
)
"""The meaning of a control log without records."""

_LOOKS: Final = 3
"""How often a log is read again that has moved on while its last transaction was asked for."""

RECENT: Final = 20
"""Newest records of a log among which takeovers are counted."""


class SinkStatus(StrEnum):
    """The state at the end of a sink's log."""

    NEW = "new"
    EMPTY = "empty"
    COMMITTED = "committed"
    UNFINISHED = "unfinished"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class SinkState:
    """A sink, as its control log tells.

    Attributes:
        name: the sink's.
        status: "new": no batch was begun; "empty": see `EMPTY_LOG`; "committed": the last one that was begun is;
            "unfinished": it is not, since it is being written, was aborted, or its commit is under way; "unreadable":
            see `problem`.
        query_id, run_id: of Spark, of the run that took the sink over last; None where the log doesn't say.
        batch_id: the newest committed batch; None where none is retained.
        rows: how many rows that batch has, over all topics.
        topics: those that it wrote to.
        committed_ms, owned_ms: when that batch's MARKER, and the last takeover, were written, in milliseconds since
            1970 by the driver's clock; None where the log doesn't say.
        former_run_id: of the run that owned the sink before, as far back as the log is retained.
        takeovers: how many of the newest records are takeovers by another run; see RECENT.
        unfinished: what was begun after it.
        open: whether a coordinator has the unfinished transaction open. False: it has ended without a commit. None
            where that was not asked, or is not known, or where the MARKER of an ended one may be hidden.
        problem: why the log can't be read, or does not tell what the sink has done, or why the admin API does not tell
            whether the unfinished transaction is open. None where all is told.
    """

    name: str
    status: SinkStatus
    query_id: str | None = None
    run_id: str | None = None
    batch_id: int | None = None
    rows: int | None = None
    unfinished: Intent | None = None
    open: bool | None = None
    problem: str | None = None
    topics: tuple[str, ...] = ()
    committed_ms: int | None = None
    owned_ms: int | None = None
    former_run_id: str | None = None
    takeovers: int = 0


def sinks(client: Client, namespace: str, admin: Admin | None = None) -> list[SinkState]:
    """Return the sinks of a "tenant/namespace", by name. One whose log can't be read is "unreadable".

    Args:
        admin: asked whether unfinished transactions are open.

    Raises InvalidInput for a malformed name, and what `Client.topics` raises.
    """
    check_namespace(namespace)
    names = (topic.rpartition("/")[2] for topic in client.topics(namespace))
    found = []
    for name in sorted(name.removeprefix(CONTROL) for name in names if name.startswith(CONTROL)):
        try:
            found.append(sink(client, name, namespace, admin))
        except (DamagedLog, NewerVersion, NetworkError) as error:
            found.append(SinkState(name, SinkStatus.UNREADABLE, problem=_without_ways_out(error)))
        except InvalidInput:  # no sink has such a name, or its log was deleted just now
            continue
    return found


def sink(client: Client, name: str, namespace: str, admin: Admin | None = None) -> SinkState:
    """Return one sink. Raises InvalidInput where there is none, and what reading its log raises.

    Where its unfinished transaction is not open, the log is read again, since the MARKER may have come meanwhile. In a
    log that moves on each time it is not known whether the last one is open. Where the log may hide the MARKER, it is
    not known whether the last one has ended without a commit.
    """
    one = _told(client, name, namespace)
    for _ in range(_LOOKS):
        if admin is None or one.unfinished is None:
            break
        txn = one.unfinished.txn
        try:
            open_yet = is_open(admin, txn)
        except NetworkError as error:  # what the log tells is known all the same
            not_told = f"Whether transaction {txn} is open is not known: {error}"
            return replace(one, problem=one.problem or not_told)
        if open_yet is not False:
            return replace(one, open=open_yet)
        hides = hides_a_part(client, admin, control_topic_in(namespace, name))
        before, one = one.unfinished, _told(client, name, namespace)
        if one.unfinished == before:
            return replace(one, open=None if hides else False)
    return one


def _told(client: Client, name: str, namespace: str) -> SinkState:
    """Return what the log of a sink tells now."""
    runs = dict[str, None]()
    recent = deque[bool](maxlen=RECENT)
    last_ms: dict[type[Record], int] = {}

    def note(record: Record, message: MessagePort) -> None:
        # A run writes OWNER again after it has ended a transaction, and when its log was lost. Neither is a takeover.
        recent.append(isinstance(record, OwnerRecord) and record.run_id != next(reversed(runs), None))
        last_ms[type(record)] = message.publish_time_ms
        if isinstance(record, OwnerRecord):
            runs.pop(record.run_id, None)  # the last owner comes last
            runs[record.run_id] = None

    view = read(client, log_of(client, name, namespace), note)
    newest, unfinished, owner = view.newest, view.unfinished, view.intent or view.owner
    status = SinkStatus.UNFINISHED if unfinished else SinkStatus.COMMITTED if newest else SinkStatus.NEW
    problem = None
    if view.empty:
        status, problem = SinkStatus.EMPTY, EMPTY_LOG
    try:
        view.check_whole(None)
    except DamagedLog as error:
        status, problem = SinkStatus.UNREADABLE, _without_ways_out(error)
    return SinkState(
        name,
        status,
        None if owner is None else owner.query_id,
        None if owner is None else owner.run_id,
        None if newest is None else newest.batch_id,
        None if newest is None else sum(newest.rows.values()),
        unfinished,
        problem=problem,
        topics=() if newest is None else tuple(sorted(newest.rows)),
        committed_ms=last_ms.get(Marker),
        owned_ms=last_ms.get(OwnerRecord),
        former_run_id=next((run for run in reversed(runs) if owner is None or run != owner.run_id), None),
        takeovers=sum(recent),
    )


def _without_ways_out(error: EosError) -> str:
    """Return what is wrong with a log, for a cell of a table."""
    return str(error).removesuffix(f".{WAYS_OUT}")


def is_open(admin: Admin, txn: TxnId) -> bool | None:
    """Whether a coordinator has a transaction open; None where that can't be known, as for a role that may not ask."""
    try:
        return admin.transaction(txn) is not None
    except Refused:
        return None


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """A record, and when it was sent, in milliseconds since 1970 by the driver's clock."""

    record: Record
    at_ms: int


def records(client: Client, name: str, namespace: str, last: int) -> list[WrittenBatch]:
    """Return the last records of a sink's log, oldest first. Raises as `sink`."""
    kept = deque[WrittenBatch](maxlen=last)
    read(
        client,
        log_of(client, name, namespace),
        lambda record, message: kept.append(WrittenBatch(record, message.publish_time_ms)),
    )
    return list(kept)


def log_of(client: Client, name: str, namespace: str) -> str:
    """Return a sink's control topic. Raises InvalidInput where there is none in the "tenant/namespace"."""
    check_namespace(namespace)
    topic = control_topic_in(namespace, name)
    try:
        if partitions := client.partitions(topic):
            raise InvalidInput(
                f'There is no sink "{name}" in {namespace}. {topic} has {partitions} partitions, and a control topic '
                "has none. Another program created it for another purpose."
            )
    except TopicMissing as error:
        raise InvalidInput(
            f'There is no sink "{name}" in {namespace}. It has no control topic there. Check the name, which is '
            "the option name= of eos.sink(), and give the namespace of its topic with --namespace, or that of its "
            "control_namespace=. Only an exactly-once sink has a control topic. One with another guarantee= has none, "
            "and no log tells what it wrote."
        ) from error
    return topic


def read(client: Client, topic: str, each: Each = lambda record, message: None) -> LogView:
    """Fold a control log from the oldest record that its sink needs. Raises as `commit.reading.read_log`."""
    view = view_behind(oldest_needed(client, topic, ONE_READ), ONE_READ)
    read_on(client, topic, ONE_READ, view, each=each)
    return view


def summary(one: SinkState) -> dict[str, Any]:
    """The part of `eos sink list --json` about a sink."""
    begun = one.unfinished
    return {
        "name": one.name,
        "status": str(one.status),
        "query_id": one.query_id,
        "run_id": one.run_id,
        "batch_id": one.batch_id,
        "rows": one.rows,
        "committed_ms": one.committed_ms,
        "owned_ms": one.owned_ms,
        "unfinished": None
        if begun is None
        else {"batch_id": begun.batch_id, "attempt": begun.attempt, "transaction": str(begun.txn), "open": one.open},
        "problem": one.problem,
    }


def plain(written: WrittenBatch) -> dict[str, Any]:
    """The part of `eos sink show --json` about a record."""
    record = written.record
    shown: dict[str, Any] = {
        "number": record.number,
        "at_ms": written.at_ms,
        "kind": KINDS[type(record)],
        "query_id": record.query_id,
        "run_id": record.run_id,
    }
    if isinstance(record, OwnerRecord):
        return shown | {
            "coordinator": record.coordinator,
            "topic_epoch": record.topic_epoch,
            "cluster": record.cluster,
        }
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
