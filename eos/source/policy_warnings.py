"""What policies of a topic do to a read of it, as the admin API tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eos.pulsar.net.policies import TopicPolicies


class PoliciesPort(Protocol):
    """What is asked of the admin API."""

    def read_rates(self, topic: str) -> Sequence[str]:
        """Return the rates that limit the reading of a physical topic, in words."""
        ...

    def keeping(self, topic: str) -> TopicPolicies:
        """Return what a broker does with the stored messages of a physical topic."""
        ...


def policy_warnings(admin: PoliciesPort, topic: str, physical: str, *, retained: bool) -> list[str]:
    """Say what policies do to a read of a topic.

    Args: the admin API; the topic; one of its partitions, or itself; whether durable subscriptions keep it stored
        meanwhile.

    Raises what the admin API does.
    """
    found = [
        f"Reads of {topic} are slow, since a policy limits what its broker sends: {rate}. Raise it where it is set: "
        f"pulsar-admin topicPolicies or namespaces, set-{'subscription-' * rate.startswith('sub')}dispatch-rate."
        for rate in admin.read_rates(physical)
    ]
    if retained:
        found += [
            f"retainWhileReading=true and the backlog quota of {topic} ({quota}) do not fit: what a task has still to "
            "read counts as backlog, and at the limit the broker refuses the topic's producers until the read has "
            "ended. Read without retainWhileReading, or lift the quota meanwhile."
            for quota in admin.keeping(physical).quotas
            if not quota.evicts
        ]
    return found
