"""The admin API's answers about the control topic, where it is known: policies that delete its records, or block it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from eos.config import Cluster
from eos.errors import InvalidInput, NetworkError, Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import FORBIDDEN
from eos.pulsar.net.policies import BacklogQuota, TopicPolicies
from eos.pulsar.wire.txn import TxnId


def check_admin(admin_url: str, cluster: Cluster) -> None:
    """Refuse an admin URL that is none, that can't be reached, or that does not accept the credentials.

    Raises InvalidInput, which names the URL.
    """
    try:
        with _asking(admin_url, cluster) as admin:
            admin.version()
    except NetworkError as error:
        raise _of_no_use(admin_url, error) from error


def check_retention(admin_url: str, cluster: Cluster, control_topic: str) -> None:
    """Refuse a control topic whose records would be deleted, or whose producers or readers would be shut out.

    A durable subscription keeps the records, but a message TTL and an evicting backlog quota delete unacknowledged
    ones all the same. A quota with another policy refuses every producer once that subscription is past the limit,
    and by age it is past it for good: it retains the markers of the newest batches on purpose.

    Raises:
        InvalidInput: a TTL, a quota or a limit of consumers is in force, and the message has the command that lifts it;
            or the role may not ask, or the admin API can't be used.
        NetworkError: the admin API does not answer now, or says that it cannot.
    """
    with _asking(admin_url, cluster) as admin:
        try:
            keeping = admin.keeping(control_topic)
        except Refused as error:
            if error.code not in FORBIDDEN:
                raise
            raise InvalidInput(
                f"Whether policies threaten the control topic {control_topic} is not told to this role: {error}. Make "
                "it an administrator of the tenant. Or leave admin_url out, and let an administrator look with eos "
                "doctor"
            ) from error
    for danger in dangers(keeping, control_topic):
        raise InvalidInput(danger)


def check_expiry(admin_url: str, cluster: Cluster, control_topic: str) -> None:
    """Refuse a control topic whose durable subscription would be deleted, for a job, which has no checkpoint.

    Once the subscription is gone the broker may delete the records. A query's checkpoint then knows that there were
    some. A later call of the job finds an empty log, and would write its rows again without a word. What a role may not
    ask for is not known, and refuses nothing.

    Raises:
        InvalidInput: the message has the command that retains the records; or the admin API can't be used.
        NetworkError: the admin API does not answer now, or says that it cannot.
    """
    with _asking(admin_url, cluster) as admin:
        minutes = _expiry_minutes(admin, control_topic)
        keeping = admin.keeping(control_topic) if minutes > 0 else None
    if keeping is not None and (keeping.retention_minutes, keeping.retention_mb) != (-1, -1):
        raise InvalidInput(
            f"The brokers delete each subscription of the control topic {control_topic} that nobody uses for {minutes} "
            f"minutes ({_EXPIRY}), and then the topic's records. A later call of the job would not know that it is "
            "committed, and would write its rows again. Retain the records with "
            f"pulsar-admin topicPolicies set-retention --time -1 --size -1 {control_topic}"
        )


def _expiry_minutes(admin: Admin, topic: str) -> int:
    try:
        own = admin.subscription_expiry_minutes(topic)
        return int(admin.setting(_EXPIRY) or 0) if own is None else own
    except Refused as refused:
        if refused.code not in FORBIDDEN:
            raise
        return 0


_EXPIRY: Final = "subscriptionExpirationTimeMinutes"
"""Of broker.conf; a namespace's own value counts more (PersistentTopic.checkInactiveSubscriptions)."""

_CONSUMERS: Final = 2
"""So many consumers of its control topic a sink has at a time: it holds the subscription, and reads."""

_ENOUGH: Final = 8
"""As many as come together: two drivers in a takeover, and commands that look meanwhile."""


def dangers(keeping: TopicPolicies, control_topic: str) -> Iterator[str]:
    """Say what of these policies a control topic must not have, each with the command that lifts it."""
    if 0 < keeping.most_consumers < _CONSUMERS:
        yield (
            f"The control topic {control_topic} may have {keeping.most_consumers} consumer at a time "
            "(maxConsumersPerTopic), and the sink, which holds a subscription of it, reads it too. The sink would wait "
            "in vain. Allow more, also for a driver that takes over and for the commands of eos, with pulsar-admin "
            f"topicPolicies set-max-consumers --max-consumers {_ENOUGH} {control_topic}"
        )
    if keeping.ttl_s > 0:
        yield (
            f"A message TTL of {keeping.ttl_s} s is in force on the control topic {control_topic}. Its records would "
            "be gone after the job was down that long, and with them the knowledge of what is committed. Exempt the "
            "topic with "
            f"pulsar-admin topicPolicies set-message-ttl --ttl 0 {control_topic}"
        )
    for quota in keeping.quotas:
        happens = (
            "At its limit the broker deletes the records, and with them the knowledge of what is committed"
            if quota.evicts
            else "At its limit the broker refuses the sink's own producer for good, since the sink retains the records "
            "of its newest batches"
        )
        yield (
            f"A backlog quota is in force on the control topic {control_topic} ({quota}). {happens}. Exempt the topic "
            f"by a quota without a limit, with {without_limit(quota, control_topic)}"
        )


def without_limit(quota: BacklogQuota, topic: str) -> str:
    """Return the command that exempts one topic from a quota of its namespace or broker."""
    limit = "--limitTime=-1" if quota.kind == "message_age" else "--limit=-1"
    return (
        f"pulsar-admin topicPolicies set-backlog-quota --type {quota.kind} {limit} --policy producer_request_hold "
        f"{topic}"
    )


def holders(admin_url: str, cluster: Cluster, coordinator: int) -> str | None:
    """Say which open transactions of a coordinator may hold a frozen topic up; None where that is not known."""
    try:
        with Admin(admin_url, cluster.credentials, cluster.tls, cluster.request_timeout_s) as admin:
            found = [one for one in admin.open_transactions() if one.txn.most == coordinator]
    except NetworkError:
        return None
    now_ms = time.time_ns() // 1_000_000
    return (
        "; ".join(
            f"transaction {one.txn}, {one.status}, opened {max(0, now_ms - one.opened_ms) / 1000:.0f} s ago, "
            f"ends by itself after {one.ttl_ms / 1000:.0f} s, on {', '.join(one.partitions) or 'no topic yet'}"
            for one in found
        )
        or None
    )


def written_partitions(
    admin_url: str, cluster: Cluster, control_topic: str, timeout_s: float, txn: TxnId
) -> set[str] | None:
    """Return the physical topics that a sink's transaction has, without the control topic; None once it has ended.

    The control topic takes records of the sink's one producer only. Seconds are for any part of an answer. Raises what
    `Admin.transaction` does.
    """
    with Admin(admin_url, cluster.credentials, cluster.tls, timeout_s) as admin:
        found = admin.transaction(txn)
    return None if found is None else set(found.partitions) - {control_topic}


@contextmanager
def _asking(admin_url: str, cluster: Cluster) -> Iterator[Admin]:
    """Ask the admin API in the block. A refusal there becomes InvalidInput, unless it may pass by itself."""
    with Admin(admin_url, cluster.credentials, cluster.tls, cluster.request_timeout_s) as admin:
        try:
            yield admin
        except Refused as refused:
            if refused.code in _NOT_NOW:
                raise
            raise _of_no_use(admin_url, refused) from refused


_NOT_NOW: Final = ("429", "500", "502", "503", "504")
"""HTTP statuses of a broker that starts or is busy, and of a gateway whose brokers do not answer."""


def _of_no_use(admin_url: str, error: NetworkError) -> InvalidInput:
    return InvalidInput(f'The sink can\'t use admin_url="{admin_url}": {error}')
