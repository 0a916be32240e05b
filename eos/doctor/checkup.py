"""All that `eos doctor` looks at, besides readers that are held up: for the sinks of a namespace, or for one job.

Before a job starts, `eos doctor --preflight` reports each of its needs, also the good ones. It looks at what the sink
will look at again when it starts with `admin_url`, and at what only the first batch would find out: whether its topics
are there, and whether this role and their policies let it write or read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Final

from eos.commit.control_topic import control_topic_in
from eos.doctor.abort import OWNED
from eos.doctor.brokers import brokers, subscription_types
from eos.doctor.check import Check, CheckVerdict, care, good, not_told, unknown
from eos.doctor.deletion_policies import Kept, keeping, keeping_of
from eos.doctor.doctor import Unrecovered
from eos.doctor.machine import machine
from eos.doctor.owners import owners
from eos.doctor.quotas import topics as number_of_topics
from eos.doctor.sinks import sinks
from eos.errors import AuthorizationUnknown, NetworkError, Refused, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import FORBIDDEN
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import namespace_of, physical_topics

_NOT_ALLOWED = ("AuthorizationError", "AuthenticationError")
_NO_TRANSACTIONS: Final = "not configured with transactionCoordinatorEnabled=true"
"""Words of a broker whose transactions are off (TransactionsBase.checkTransactionCoordinatorEnabled)."""


def checkup(client: Client, admin: Admin, namespace: str) -> list[Check]:
    """Look at this machine, at the brokers, and at each sink of a "tenant/namespace".

    Raises NetworkError where the brokers or their admin API do not answer at all.
    """
    found = sinks(client, namespace, admin)
    return [
        *machine(),
        *brokers(client, admin, namespace),
        number_of_topics(admin, namespace),
        *owners(admin, found, namespace),
        *keeping(client, admin, found, namespace),
    ]


def readers_not_told(error: Refused) -> Check:
    """Say why it is not known which readers wait. Raises the error if that is for no reason known here.

    Known are a role that may not ask, a broker without transactions, and one that cannot recover a topic.
    """
    if isinstance(error, Unrecovered):
        return care("readers", f"Which partitions hold readers up is not known: {error}")
    if _NO_TRANSACTIONS in error.detail:
        return good("readers", "No transaction holds readers up. The broker runs without transactions.")
    if error.code not in FORBIDDEN:
        raise error
    return unknown("readers", f"Which partitions hold readers up is not told to this role: {error}")


def job_needs(
    client: Client, admin: Admin, namespace: str, sink: str | None = None, topics: Sequence[str] = ()
) -> Iterator[Check]:
    """Look at this machine, at the brokers, and at the topics that a job is about to use. Nothing is written or made.

    Args:
        client: connected with the job's own credentials.
        admin: of the same cluster.
        namespace: the "tenant/namespace" of the control topic.
        sink: the sink's name; None: the job only reads.
        topics: full names of the topics that it writes to or reads.

    Raises NetworkError where the brokers or their admin API do not answer at all.
    """
    kept: Kept = cache(admin.keeping)
    yield from machine()
    yield from brokers(client, admin, namespace)
    yield number_of_topics(admin, namespace)
    for other in sorted({namespace_of(topic) for topic in topics} - {namespace}):
        yield subscription_types(admin, other)
    if sink is not None:
        yield from _control_topic(client, admin, sink, control_topic_in(namespace, sink), kept)
    for topic in topics:
        found = _topic(client, kept, topic, writes=sink is not None)
        yield from found
        if found[0].verdict is CheckVerdict.GOOD:
            yield from keeping_of(client, admin, sink or "the job", (), (topic,), kept)


def _control_topic(client: Client, admin: Admin, sink: str, topic: str, kept: Kept) -> Iterator[Check]:
    about = f"log of {sink}"
    try:
        if partitions := client.partitions(topic):
            yield care(
                about,
                f"{topic} has {partitions} partitions, and a sink refuses a control topic with partitions. Delete it, "
                f"and make it again with pulsar-admin topics create {topic}",
            )
            return
        _policies(kept, topic)
    except TopicMissing:
        yield unknown(
            about,
            f"{topic} is not made yet, so which policies will be in force on it is not told. Make it now, and ask "
            f"again with pulsar-admin topics create {topic}",
        )
    except NetworkError as error:
        yield _refused(about, f"Whether this job may use {topic}", error)
    else:
        yield from keeping_of(client, admin, sink, (topic,), (), kept)
        yield _may_read(client, topic)
        yield _may_write(client, topic)


def _policies(kept: Kept, topic: str) -> None:
    """Ask for the policies of a topic that brokers know, which shows that it is there.

    Only an administrator may ask. To a job's own role they are not known, and it can connect all the same.

    Raises TopicMissing, and NetworkError for any other refusal.
    """
    try:
        kept(topic)
    except Refused as error:
        if error.code not in FORBIDDEN:
            raise


def _topic(client: Client, kept: Kept, topic: str, *, writes: bool) -> list[Check]:
    """Say first whether the topic is there, then whether it can be written to."""
    try:
        physical = physical_topics(topic, client.partitions(topic))
        _policies(kept, physical[0])
    except TopicMissing:
        made = "a sink makes no topics" if writes else "a query that reads it ends at its start"
        return [
            care(
                f"topic {topic}", f"{topic} does not exist, and {made}. Make it with pulsar-admin topics create {topic}"
            )
        ]
    except NetworkError as error:
        return [_refused(f"topic {topic}", f"Whether {topic} is there", error)]
    parts = f"{len(physical)} partition{'s' if len(physical) > 1 else ''}"
    found = [good(f"topic {topic}", f"{topic} is there, with {parts}.")]
    return [*found, _may_write(client, physical[0]) if writes else _may_read(client, physical[0])]


def _may_write(client: Client, physical: str) -> Check:
    """Connect a producer, and close it again: nothing is sent.

    A producer beside a sink's is refused by its mode, after the broker has looked at the right.
    """
    about = f"right to write to {physical}"
    try:
        client.producer(physical).close()
    except NetworkError as error:
        if isinstance(error, Refused) and OWNED in error.detail:
            return good(about, f"A driver is connected to {physical}, and this role may write to it.")
        return _refused(about, f"Whether this job may write to {physical}", error)
    return good(about, f"A producer connected to {physical}, and nothing was sent.")


def _may_read(client: Client, physical: str) -> Check:
    """Connect a reader, and close it again: no message is asked for, and none is acknowledged."""
    about = f"right to read {physical}"
    reader = client.entry_reader(physical, None, permits=1)
    try:
        reader.last_message_id()
    except TopicMissing:  # the topic is there
        return good(about, f"{physical} holds nothing, so a broker has removed it. Readers pass it over.")
    except NetworkError as error:
        return _refused(about, f"Whether this job may read {physical}", error)
    finally:
        with suppress(NetworkError):
            reader.close()
    return good(about, f"A reader connected to {physical}, and acknowledged nothing.")


def _refused(about: str, what: str, error: NetworkError) -> Check:
    """Rights and policies need care, and the error has what helps. All else is not known."""
    if isinstance(error, Refused) and error.code in _NOT_ALLOWED and not isinstance(error, AuthorizationUnknown):
        return care(about, f"{what}: it may not. {error}")
    return not_told(about, f"{what} is not known, since a try failed: {error}", error)
