"""Ending the transaction that a dead driver has left open, so that readers need not wait for its time-out.

Only a transaction of the sink's last INTENT can be open, and only while that INTENT has no MARKER. An abort of it is
safe at any time: a driver that lives finds its transaction gone, and writes the batch again. Asking first is courtesy,
and must not throw a driver out. Of the control topic a driver has two things while it is connected: the producer, which
a fenced driver's last try makes the broker close, and the subscription that retains the records. We ask for both in a
way that changes nothing for it: an exclusive producer of this command would move the topic's epoch on, and so fence a
driver whose own was just closed.

A driver without any connection, as after its topic was unloaded, comes back with its next batch. Until then nobody can
distinguish it from one that is gone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from eos.commit.control_log import Intent, Marker, Record
from eos.commit.control_topic import DEFAULT_NAMESPACE, HOLD
from eos.commit.decision import JOB
from eos.commit.log_reader import read_retained
from eos.commit.owned_log import TERMINATED
from eos.commit.ports import MessagePort
from eos.commit.retry import ONE_READ, Retry
from eos.commit.transaction import TransactionEnd, end
from eos.doctor.sinks import EMPTY_LOG, is_open, log_of, read
from eos.doctor.traces import hides_a_part
from eos.errors import EosError, InvalidInput, NetworkError, Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId

OWNED: Final = "exclusive producer"
"""The broker's words to a shared producer beside an owner's (AbstractTopic). The code stands for limits too."""


_ASK: Final = "If readers wait, eos doctor says for which transaction"


class OwnerAlive(EosError):
    """A driver is connected to the sink's control topic: stop the query, then abort."""


class AbortOutcome(StrEnum):
    """The result of an abort."""

    ABORTED = "aborted"
    COMMITTED = "committed"
    HAD_ENDED = "had ended"
    NOTHING_OPEN = "nothing open"
    HIDDEN = "ended, outcome not known"
    NOT_KNOWN = "not known"


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


def abandoned(client: Client, name: str, namespace: str = DEFAULT_NAMESPACE) -> Abandoned | None:
    """Find the transaction that the sink's last driver did not commit; None when there is none.

    It may have ended since: an abort writes nothing into the log.

    Args:
        client: the cluster.
        name: the sink's.
        namespace: "tenant/namespace" of its control topic.

    Raises:
        InvalidInput: there is no such sink here, or its log is empty.
        DamagedLog, NetworkError: its log can't be read, or has lost its beginning.
    """
    topic = log_of(client, name, namespace)
    view = read_retained(client, topic, ONE_READ)
    if view.unfinished is not None:
        return Abandoned(name, topic, view.unfinished)
    view.check_whole(None)
    if view.empty:
        raise InvalidInput(
            f'{EMPTY_LOG}. So it is unknown whether the sink "{name}" has left a transaction open. {_ASK}'
        )
    return None


def abort(client: Client, found: Abandoned, admin: Admin | None = None, patience_s: float = 60.0) -> AbortOutcome:
    """Abort it, and wait until it has ended.

    COMMITTED: it was on its way to the commit that its driver had asked for, as the log says afterwards.
    HIDDEN: it has ended, and the log may hide its MARKER, as readers of the log wait.
    NOT_KNOWN: it has ended, or another role has it open. The coordinator says the same of both, also to the role that
    opened it. Only a superuser gets to know which. No log and no setting of a broker tells the time-out of a
    transaction, so time proves nothing. A client without credentials is taken for the only role.

    Args:
        client: the cluster, with the credentials of the role that opened the transaction.
        found: what `abandoned` gave.
        admin: a superuser's, if there is one: it can abort what another role has opened. One of a role that may not ask
            for transactions counts as none.
        patience_s: the longest wait.

    Raises:
        OwnerAlive: a driver owns the sink.
        InvalidInput: the log has moved on since `abandoned`, or another role opened the transaction.
        NetworkError: it did not end in time, or whether a driver owns the sink can't be known.
    """
    refuse_if_owned(client, found.name, found.topic, admin)
    intent = read_retained(client, found.topic, ONE_READ).unfinished
    if intent != found.intent:
        raise InvalidInput(f'The log of the sink "{found.name}" has moved on. Look again.')
    was_open = None if admin is None else is_open(admin, intent.txn)
    if was_open is None:
        admin = None
    if _end(client, found, admin, patience_s):
        return AbortOutcome.ABORTED
    hides = admin is not None and hides_a_part(client, admin, found.topic)
    if _committed(client, found):
        return AbortOutcome.COMMITTED
    if hides:
        return AbortOutcome.HIDDEN
    if was_open:
        return AbortOutcome.ABORTED
    # To a role that did not open it the coordinator says the same of an open transaction as of one that has ended.
    other_role = found.intent.principal is not None or _authenticates(client)
    return AbortOutcome.NOT_KNOWN if admin is None and other_role else AbortOutcome.HAD_ENDED


def told(name: str, found: Abandoned | None, outcome: AbortOutcome) -> str:
    """Say the result of it, and the next step. Args: the sink's name, the finding, and the result."""
    if found is None or outcome is AbortOutcome.NOTHING_OPEN:
        return f'The sink "{name}" has left no transaction open. If readers wait all the same, eos doctor says why.'
    job = found.intent.query_id.startswith(JOB)
    again = "The next call of eos.write writes the job." if job else "Its query writes the batch again when it starts."
    if outcome is AbortOutcome.ABORTED:
        return f"Aborted {found}. Readers go on. {again}"
    if outcome is AbortOutcome.COMMITTED:
        after = "The next call of eos.write writes nothing." if job else "Its query goes on with the next batch."
        return f"It was committed meanwhile: {found}. Readers go on. {after}"
    if outcome is AbortOutcome.HAD_ENDED:
        return f"It had ended before: {found}. {again}"
    if outcome is AbortOutcome.HIDDEN:
        return (
            f"It has ended: {found}. Whether its batch is committed is not known, since readers of {found.topic} wait. "
            f"eos doctor {found.topic} says why. Its {'next call' if job else 'query'} finds out when it starts."
        )
    role = found.intent.principal
    only = "the role that opened it" if role is None else f"the role {role}"
    use = "the credentials that the sink's driver has" if role is None else "its credentials"
    return (
        f"This role sees no such open transaction: {found}. It has ended, or only {only} may end it. Once it has "
        f"ended, {only} gets this answer too. If you did not give {use}, give them. Only a superuser learns, with "
        "--admin-url, which of the two it is."
    )


def summary(name: str, found: Abandoned | None, outcome: AbortOutcome) -> dict[str, Any]:
    """The output of `eos sink abort --json`."""
    intent = None if found is None else found.intent
    return {
        "sink": name,
        "outcome": str(outcome),
        "transaction": None if intent is None else str(intent.txn),
        "batch_id": None if intent is None else intent.batch_id,
        "attempt": None if intent is None else intent.attempt,
        "query_id": None if intent is None else intent.query_id,
    }


def refuse_if_owned(client: Client, name: str, topic: str, admin: Admin | None = None) -> None:
    """Refuse where a driver is connected to a sink's control topic. Nothing is changed for the driver.

    Args:
        client: the cluster, with the credentials of a role that may read and write the topic.
        name: the sink's.
        topic: its control topic.
        admin: asked first, if there is one, since it also knows from where the driver is connected.

    Raises:
        OwnerAlive: a driver owns the sink.
        NetworkError: that can't be known.
    """
    if admin is not None:
        with suppress(NetworkError):  # a role without the right to ask learns it from the brokers
            if connected := admin.connected(topic, HOLD):
                raise OwnerAlive(f"{alive(name, topic)} (From {', '.join(connected)})")
    if client.is_held(topic, HOLD):
        raise OwnerAlive(alive(name, topic))
    try:
        client.producer(topic).close()
    except Refused as error:
        if error.code == TERMINATED:  # nobody has a producer there, and a driver would hold the subscription
            return
        if OWNED not in error.detail:
            raise
        raise OwnerAlive(f"{alive(name, topic)} ({error})") from error


def alive(name: str, topic: str) -> str:
    """Say that a driver owns a sink. Args: the sink's name; its control topic."""
    return (
        f'A driver owns the sink "{name}". It is connected to {topic}. Stop its query first. The connection of a '
        "machine that was cut off lasts up to a minute more."
    )


def _end(client: Client, found: Abandoned, admin: Admin | None, patience_s: float) -> bool:
    """Have it ended. True where the coordinator has answered our abort with success. Else its log says how it ended."""
    txn = found.intent.txn
    patience = Retry(patience_s)
    while True:
        answer = end(client, txn, commit=False, patience=patience)
        if answer.ending is TransactionEnd.NOT_YET:
            raise answer.error or Refused(f"abort transaction {txn}", "NotEnded", f"after {patience_s:g} s")
        if answer.ending is TransactionEnd.ABORTED or admin is None or is_open(admin, txn) is False:
            return answer.ending is TransactionEnd.ABORTED
        admin.abort(txn)  # "not found" for us, since another role has opened it
        if not patience.pause():
            raise Refused(f"abort transaction {txn}", "NotEnded", f"a superuser has asked for it, {patience_s:g} s ago")


def _authenticates(client: Client) -> bool:
    cluster = client.cluster
    return cluster.credentials.method != "none" or cluster.tls.certificate is not None


def _committed(client: Client, found: Abandoned) -> bool:
    markers: list[TxnId] = []

    def note(record: Record, message: MessagePort) -> None:
        if isinstance(record, Marker):
            markers.append(record.txn)

    read(client, found.topic, note)
    return found.intent.txn in markers
