"""The words of control logs about transactions: which sink opened one, and whether its batch is committed.

That a batch is not committed is proven only by a log that could be read to its end after the transaction had ended. A
log whose own readers are held up shows only its beginning. Each MARKER lies before the next INTENT, so such a log does
not tell about its last readable INTENT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from eos.commit.control_log import Intent, Marker, Record
from eos.commit.control_topic import CONTROL
from eos.commit.log_reader import oldest_needed, read_log
from eos.commit.ports import MessagePort
from eos.commit.retry import ONE_READ
from eos.errors import DamagedLog, NetworkError, NewerVersion, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId


@dataclass(frozen=True, slots=True)
class Trace:
    """The words of a sink's control log about a transaction.

    Attributes:
        sink: the sink's name.
        namespace: "tenant/namespace" of its control topic.
        intent: the batch it was opened for.
        committed: its MARKER is readable; None where that is not known, since the control log could not be read whole.
    """

    sink: str
    namespace: str
    intent: Intent
    committed: bool | None


class Traces(NamedTuple):
    """The words of a namespace's control logs, and the sinks whose logs could not be read whole."""

    found: dict[TxnId, Trace]
    unread: tuple[str, ...]


def read_traces(client: Client, admin: Admin, namespace: str) -> Traces:
    """Read each control log of a "tenant/namespace"."""
    try:
        topics = admin.topics(namespace)
    except (NetworkError, TopicMissing) as error:
        return Traces({}, (f"each sink of {namespace} ({error})",))
    found: dict[TxnId, Trace] = {}
    unread: list[str] = []
    for topic in topics:
        name = topic.rpartition("/")[2]
        if not name.startswith(CONTROL):
            continue
        sink = name.removeprefix(CONTROL)
        try:
            intents, committed, whole, hides = _read(client, admin, topic)
        except TopicMissing:  # deleted just now
            continue
        if hides or not whole:
            unread.append(sink)
        for intent in intents:
            proven = whole and not (hides and intent is intents[-1])
            without_marker = False if proven else None
            found[intent.txn] = Trace(sink, namespace, intent, True if intent.txn in committed else without_marker)
    return Traces(found, tuple(unread))


def _read(client: Client, admin: Admin, topic: str) -> tuple[list[Intent], set[TxnId], bool, bool]:
    """Return the INTENTs of a log, the transactions of its MARKERs, whether it is whole, and whether it hides a part.

    Raises TopicMissing.
    """
    intents: list[Intent] = []
    committed: set[TxnId] = set()

    def note(record: Record, message: MessagePort) -> None:
        if isinstance(record, Intent):
            intents.append(record)
        elif isinstance(record, Marker):
            committed.add(record.txn)

    whole = True
    # Asked before: what the log hides from then on was written after the transaction in question had ended.
    hides = hides_a_part(client, admin, topic)
    try:
        read_log(client, topic, ONE_READ, each=note).check_whole(None)
    except (DamagedLog, NewerVersion, NetworkError):
        # The records that were read until then still tell which sink a transaction belongs to.
        whole = False
    return intents, committed, whole, hides


def hides_a_part(client: Client, admin: Admin, topic: str) -> bool:
    """Whether a control log may hold records that its readers do not get yet. Raises TopicMissing."""
    try:
        try:
            buffer = admin.buffer(topic)
        except TopicMissing:  # no broker has loaded it: a reader makes one load it
            oldest_needed(client, topic, ONE_READ)
            buffer = admin.buffer(topic)
    except NetworkError:
        return True
    return buffer.held_up or not buffer.known
