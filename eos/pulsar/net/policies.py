"""The policies of a cluster for the stored messages of a topic, and for their readers, as its admin API tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BacklogQuota:
    """A limit on what a subscription may leave unacknowledged (BacklogQuota of pulsar-client-admin-api).

    Attributes:
        kind: "message_age" or "destination_storage".
        limit: seconds, or bytes.
        policy: what the broker does at the limit: "consumer_backlog_eviction" deletes the oldest messages,
            "producer_request_hold" and "producer_exception" refuse every producer.
    """

    kind: str
    limit: int
    policy: str

    @property
    def evicts(self) -> bool:
        """Whether it deletes messages."""
        return self.policy == "consumer_backlog_eviction"

    def __str__(self) -> str:
        return f"{self.kind} of {self.limit} {'s' if self.kind == 'message_age' else 'bytes'}, policy {self.policy}"


@dataclass(frozen=True, slots=True)
class Backlog:
    """The part of a topic that the subscription that lags most has not acknowledged, as its broker counts.

    Attributes:
        bytes: stored for it, about.
        age_s: seconds since the oldest of it was published; None where the broker has not looked yet.
        slowest: the name of that subscription. "" where it is not known.
        subscriptions: the entries of each, markers and aborted ones included; less what it acknowledged singly.
    """

    bytes: int
    age_s: int | None
    slowest: str
    subscriptions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TopicPolicies:
    """A broker's policies for a topic's stored messages. They are effective values, of whatever level.

    Attributes:
        ttl_s: seconds after which unacknowledged messages expire; 0: never.
        quotas: the backlog quotas in force.
        retention_minutes, retention_mb: how long and how much acknowledged messages are kept; -1: without limit.
        most_consumers: how many may read the topic at a time; 0: without limit.
    """

    ttl_s: int
    quotas: tuple[BacklogQuota, ...]
    retention_minutes: int
    retention_mb: int
    most_consumers: int = 0


REMOVE_ENTRY_FILTERS = (
    "remove them from the policy entryFilters of the topic or its namespace, or from entryFilterNames of the brokers."
)
"""The end of a sentence."""


def entry_filters_apply(names: Sequence[str], topic: str) -> str:
    """Return two sentences: which entry filters the brokers apply to a topic, and what these do."""
    return (
        f"The brokers apply the entry filters {', '.join(names)} to {topic}. They leave out the entries that a filter "
        "rejects."
    )


def quotas_in(told: Mapping[str, Mapping[str, Any]]) -> Iterator[BacklogQuota]:
    """Read the backlog quotas that have a limit. Args: a backlogQuotaMap of the admin API."""
    for kind, quota in told.items():
        limits = ("limitTime",) if kind == "message_age" else ("limitSize", "limit")  # "limit" is the older name
        limit = max(int(quota.get(name, -1)) for name in limits)
        if limit > 0:
            yield BacklogQuota(kind, limit, str(quota.get("policy")))


_DISPATCH = {"dispatchThrottlingRateInMsg": "messages", "dispatchThrottlingRateInByte": "bytes"}
"""{field of DispatchRate (pulsar-client-admin-api): what it counts}."""


def rates_in(told: Mapping[str, Mapping[str, Any] | None]) -> Iterator[str]:
    """Say which rates limit what a broker sends to readers. Args: {policy: DispatchRate of the admin API, or None}."""
    for policy, rate in told.items():
        for field, unit in _DISPATCH.items():
            limit = int((rate or {}).get(field, -1))
            if limit > 0:
                yield f"{policy} of {limit} {unit} in {int((rate or {}).get('ratePeriodInSecond', 1))} s"
