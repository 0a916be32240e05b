"""How much is used up of what the cluster allows: backlogs of topics, and the number of topics of a namespace.

At a backlog's limit the broker deletes what a subscription has not acknowledged, or refuses every producer
(BacklogQuotaManager). At the limit of topics it makes no further ones, and no new sink's control topic either
(BrokerService.checkMaxTopicsPerNamespace, which counts each partition, and no topic of the broker's own).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eos.doctor.check import Check, care, good, unknown
from eos.errors import NetworkError
from eos.pulsar.net.admin import Admin, if_there
from eos.pulsar.net.policies import Backlog, BacklogQuota
from eos.pulsar.protocol.topics import namespace_of

_NOTHING: Final = Backlog(0, None, "", {})
"""Of a partition that the broker has removed, since it held nothing."""

_NEAR: Final = 0.8
"""Share of a limit from which on it needs care."""

_MOST_TOPICS: Final = "maxTopicsPerNamespace"


def backlogs(
    about: str, admin: Admin, quotas: Sequence[BacklogQuota], physical_topics: Sequence[str]
) -> Iterator[Check]:
    """Look at how much is used of the backlog quotas in force on a topic: of its partitions, the one nearest to it.

    Raises NetworkError where that is not known.
    """
    used = {topic: if_there(admin.backlog, topic) or _NOTHING for topic in physical_topics} if quotas else {}
    for quota in quotas:
        topic = max(used, key=lambda one: _urgency(quota, used[one]))
        yield backlog(about, quota, used[topic], topic)


def _urgency(quota: BacklogQuota, used: Backlog) -> tuple[bool, bool, int]:
    now = _used(quota, used)
    return (now is not None and now >= _NEAR * quota.limit, now is None, now or 0)


def _used(quota: BacklogQuota, used: Backlog) -> int | None:
    if not used.subscriptions:
        return 0
    return used.age_s if quota.kind == "message_age" else used.bytes


def backlog(about: str, quota: BacklogQuota, used: Backlog, topic: str) -> Check:
    """Say how much of a backlog quota is used."""
    what = f"the backlog quota of {topic} ({quota})"
    if not used.subscriptions:
        return good(about, f"Nothing is used of {what}. The topic has no subscription that could lag.")
    now, unit = _used(quota, used), "s" if quota.kind == "message_age" else "bytes"
    if now is None:
        said = (
            f"How much is used of {what} is not told. The broker looks every backlogQuotaCheckIntervalInSeconds, and "
            "only at ledgers that are closed where preciseTimeBasedBacklogQuotaCheck is false. Ask again later."
        )
        return unknown(about, said)
    share = now / quota.limit
    told = f"{share:.0%} is used of {what} ({now} {unit})"
    if share < _NEAR:
        return good(about, f"{told}.")
    slowest = f'the subscription "{used.slowest}"' if used.slowest else "the subscription that lags most"
    then = (
        "deletes the oldest messages, which it has not read"
        if quota.evicts
        else "refuses every producer, and batches fail"
    )
    said = (
        f"{told}. At the limit the broker {then}. Let the consumers of {slowest} catch up. Where nobody needs it, "
        f"delete it with pulsar-admin topics unsubscribe -s SUBSCRIPTION {topic}. Or raise the limit with pulsar-admin "
        f"namespaces set-backlog-quota {namespace_of(topic)}"
    )
    return care(about, said)


def topics(admin: Admin, namespace: str) -> Check:
    """Say how near a "tenant/namespace" is to the limit of its topics."""
    about = "number of topics"
    try:
        most = admin.most_topics(namespace)
        if most is None:
            most = int(admin.setting(_MOST_TOPICS) or 0)
        if not most:
            return good(about, f"{namespace} has no limit of topics.")
        number = len(admin.topics(namespace))
    except NetworkError as error:
        return unknown(about, f"How many topics {namespace} may have is not told: {error}")
    told = f"{namespace} has {number} of at most {most} topics ({_MOST_TOPICS}, each partition counts)"
    if number < _NEAR * most:
        return good(about, f"{told}.")
    said = (
        f"{told}. At the limit no topic is made any more, and no control topic of a new sink. Delete what nobody "
        f"needs, or raise the limit with pulsar-admin namespaces set-max-topics-per-namespace -t NUMBER {namespace}"
    )
    return care(about, said)
