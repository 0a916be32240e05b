"""Ending the transaction that a dead driver has left open, so that readers need not wait for its time-out.

Only a transaction of the sink's last INTENT can be open, and only while that INTENT has no MARKER. The control topic's
producer tells whether a driver lives: it holds the topic for as long as it is connected. While we hold it ourselves,
no driver can begin a batch without throwing us out first; one that lives, but has lost its connection, finds itself
fenced, or its transaction gone, and writes the batch again. So an abort is safe at any time; asking first is courtesy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eos.commit.control_log import Intent
from eos.commit.ending import Ending, end
from eos.commit.patience import Patience, Settings
from eos.commit.reading import read_retained
from eos.doctor.sinks import log_of
from eos.errors import EosError, Fenced, InvalidInput, Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client


class OwnerAlive(EosError):
    """A driver is connected to the sink's control topic: stop the query, then abort."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A transaction that was opened for a batch and left no MARKER.

    Attributes:
        name: the sink's.
        topic: its control topic.
        intent: what the log says of it.
    """

    name: str
    topic: str
    intent: Intent

    def __str__(self) -> str:
        one = self.intent
        role = f", opened by the role {one.principal}" if one.principal else ""
        return (
            f'transaction {one.txn} of the sink "{self.name}", batch {one.batch_id} of query {one.query_id}, '
            f"attempt {one.attempt}{role}"
        )


def abandoned(client: Client, name: str, namespace: str = "public/default") -> Abandoned | None:
    """Find the transaction that the sink's last driver did not commit; None when there is none.

    It may have ended since: an abort writes nothing into the log.

    Args:
        client: the cluster.
        name: the sink's.
        namespace: "tenant/namespace" of its control topic, which is that of its topic.

    Raises:
        InvalidInput: there is no such sink here.
        DamagedLog, NetworkError: its log can't be read.
    """
    topic = log_of(client, name, namespace)
    intent = read_retained(client, topic, Settings()).unfinished
    return None if intent is None else Abandoned(name, topic, intent)


def abort(client: Client, found: Abandoned, admin: Admin | None = None, patience_s: float = 60.0) -> bool:
    """Abort it, and wait until it has ended; False when it had ended before.

    Args:
        client: the cluster, with the credentials of the role that opened the transaction.
        found: what `abandoned` gave.
        admin: a superuser's, where it is at hand: it can abort what another role has opened.
        patience_s: the longest wait.

    Raises:
        OwnerAlive: a driver holds the sink.
        InvalidInput: the log has moved on since `abandoned`, or another role opened the transaction.
        NetworkError: it did not end in time.
    """
    with alone(client, found.name, found.topic):
        intent = read_retained(client, found.topic, Settings()).unfinished
        if intent != found.intent:
            raise InvalidInput(f'The log of the sink "{found.name}" has moved on: look again')
        return _end(client, found, admin, patience_s)


@contextmanager
def alone(client: Client, name: str, topic: str) -> Iterator[None]:
    """Hold the control topic of a sink, so that no driver is at work on it within the block.

    Raises:
        OwnerAlive: a driver holds the sink.
    """
    try:
        guard = client.producer(topic, access="exclusive")
    except (Refused, Fenced) as error:
        raise OwnerAlive(
            f'A driver owns the sink "{name}": it is connected to {topic}. Stop its query first. The '
            f"connection of a machine that was cut off lasts up to a minute more. ({error})"
        ) from error
    try:
        yield
    finally:
        guard.abandon()


def _end(client: Client, found: Abandoned, admin: Admin | None, patience_s: float) -> bool:
    txn = found.intent.txn
    open_yet = admin is not None and admin.transaction(txn) is not None
    patience = Patience(Settings(), patience_s, patience_s)
    while True:
        answer = end(client, txn, commit=False, patience=patience)
        if answer.ending is Ending.NOT_YET:
            raise answer.error or Refused(f"abort transaction {txn}", "NotEnded", f"after {patience_s:g} s")
        if answer.ending is Ending.ABORTED or admin is None or admin.transaction(txn) is None:
            return open_yet or answer.ending is Ending.ABORTED
        admin.abort(txn)  # "not found" for us, since another role has opened it
        if not patience.pause():
            raise Refused(f"abort transaction {txn}", "NotEnded", f"a superuser has asked for it, {patience_s:g} s ago")
