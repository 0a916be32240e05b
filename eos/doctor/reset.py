"""Starting a sink over: its control log is deleted, so that a query with a new checkpoint may use its name.

    end the last transaction → look once more, with no driver at work → delete the control topic

A crash before the deletion leaves the log as it was, with its last transaction aborted. Then the old query may go on.
After the deletion there is no log. A new query begins with an empty one, and the old checkpoint, which remembers
records, is refused (DamagedLog), so that its batches are not written again by accident. A driver that comes between the
second look and the deletion keeps its log: the broker deletes no topic that a producer is connected to.

Nothing of the output can be lost. All rows that the new query reads again can be doubled.
"""

from __future__ import annotations

from typing import Final

from eos.commit.control_log import Intent
from eos.commit.control_topic import DEFAULT_NAMESPACE
from eos.commit.decision import JOB
from eos.doctor.abort import Abandoned, AbortOutcome, OwnerAlive, abort, alive, refuse_if_owned
from eos.doctor.sinks import SinkState, log_of, sink
from eos.errors import InvalidInput, Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client

_CONNECTED: Final = "412"
"""The broker's status for the deletion of a topic that a client is connected to."""


def reset(
    client: Client,
    admin: Admin,
    seen: SinkState,
    namespace: str = DEFAULT_NAMESPACE,
    *,
    even_if_open: bool = False,
) -> None:
    """Delete the control log of a sink.

    Args:
        client: the cluster, with the credentials of the role that the sink's driver had.
        admin: of a role that may delete topics of the namespace.
        seen: what the caller decided by.
        namespace: "tenant/namespace" of the control topic.
        even_if_open: also where it is not known whether the last transaction has ended.

    Raises:
        OwnerAlive: a driver owns the sink.
        InvalidInput: the log has moved on since `seen`, it is not known whether the last transaction has ended, the
            role may not delete the topic, or it is replicated.
        NetworkError: a server did not answer, or the last transaction did not end in time. The log is there still,
            unless it was the deletion that was not answered.
    """
    topic = log_of(client, seen.name, namespace)
    if seen.unfinished is not None:
        outcome = abort(client, Abandoned(seen.name, topic, seen.unfinished), admin)
        if outcome is AbortOutcome.NOT_KNOWN and not even_if_open:
            raise InvalidInput(_may_be_open(seen.name, seen.unfinished))
    refuse_if_owned(client, seen.name, topic, admin)
    now = sink(client, seen.name, namespace)
    if (now.batch_id, now.unfinished) != (seen.batch_id, seen.unfinished):
        raise InvalidInput(f'The log of the sink "{seen.name}" has moved on. Look again.')
    try:
        admin.delete(topic)
    except Refused as error:
        if error.code == _CONNECTED and not error.advice:  # else it is another cluster's replicator
            raise OwnerAlive(f"{alive(seen.name, topic)} ({error})") from error
        raise


def _may_be_open(name: str, intent: Intent) -> str:
    role = "that opened it" if intent.principal is None else intent.principal
    return (
        f'Whether transaction {intent.txn} of the sink "{name}" is still open is not known to this role. Nothing was '
        "deleted. If it is open, readers wait for it until its time-out, and without the log nobody finds it. Use the "
        f"credentials of the role {role}, or give --admin-url with those of a superuser. Once it has ended, as after "
        "eos sink abort, the role that opened it gets this answer too. Then delete the log with --even-if-open."
    )


def look(client: Client, admin: Admin, name: str, namespace: str = DEFAULT_NAMESPACE) -> SinkState:
    """Return a sink that no driver owns. Raises as `reset`, and what reading its log raises."""
    refuse_if_owned(client, name, log_of(client, name, namespace), admin)
    return sink(client, name, namespace)


def what_it_means(one: SinkState) -> str:
    """Say what starting this sink over does, and what it risks."""
    if one.problem is not None:
        done = one.problem
    elif one.batch_id is None:
        done = "It has committed no batch that its log still knows"
    else:
        done = f"Its newest committed batch is {one.batch_id}, of query {one.query_id}"
    over = f'Starting the sink "{one.name}" over deletes its control log. {done}. The rows that it wrote stay.'
    if (one.query_id or "").startswith(JOB):
        return f"{over} It is a job. The next call of eos.write with this job_id writes all of its rows, once more."
    return (
        f"{over} The next query of this name begins with an empty log and writes every batch that its checkpoint hands "
        "over. Rows that it reads again are in the topics twice. The old checkpoint is refused from then on. Give the "
        "query a new one."
    )
