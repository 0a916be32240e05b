"""The effects of a topic's policies, and of its brokers' settings, on a read of it, as the admin API tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eos.errors import Refused
from eos.pulsar.net.policies import REMOVE_ENTRY_FILTERS, TopicPolicies, entry_filters_apply

FORBIDDEN = ("401", "403")
"""HTTP statuses of what a role may not ask."""


class PoliciesPort(Protocol):
    """The questions to the admin API."""

    def read_rates(self, topic: str) -> Sequence[str]:
        """Return the rates that limit the reading of a physical topic, in words."""
        ...

    def setting(self, name: str) -> str | None:
        """Return a setting of the broker that answers, as text; None where it has none of that name."""
        ...

    def entry_filters(self, topic: str) -> Sequence[str]:
        """Return the names of the entry filters that a broker applies to a physical topic."""
        ...

    def keeping(self, topic: str) -> TopicPolicies:
        """Return what a broker does with the stored messages of a physical topic."""
        ...


def setting_warnings(admin: PoliciesPort) -> list[str]:
    """Say what settings of a broker hide from a read; nothing where the role may not ask for settings.

    Raises what the admin API does.
    """
    try:
        passes_over = admin.setting("autoSkipNonRecoverableData") == "true"
    except Refused as refused:
        if refused.code not in FORBIDDEN:
            raise
        return []
    if not passes_over:
        return []
    return [
        "The broker has autoSkipNonRecoverableData=true. It leaves out entries that it cannot find. The source reports "
        "them as a loss. It asks the admin API for each transaction marker and each aborted message, which takes time. "
        "Set it to false in the brokers, and a read fails at lost entries."
    ]


def policy_warnings(admin: PoliciesPort, topic: str, physical: str, *, retained: bool) -> list[str]:
    """Say what policies do to a read of a topic.

    Args: the admin API; the topic; one of its partitions, or itself; whether durable subscriptions keep it stored
        meanwhile.

    Raises what the admin API does.
    """
    found = [
        f"Reads of {topic} are slow, since {rate} limits what its broker sends. Raise it with "
        f"pulsar-admin topicPolicies or namespaces, set-{'subscription-' * rate.startswith('sub')}dispatch-rate."
        for rate in admin.read_rates(physical)
    ]
    if filters := admin.entry_filters(physical):
        found.append(
            f"{entry_filters_apply(filters, topic)} To the source these look like transaction markers, so it cannot "
            "report their rows as lost. Let the filters pass all entries to the source's subscriptions, or "
            f"{REMOVE_ENTRY_FILTERS}"
        )
    if retained:
        found += [
            f"retainWhileReading=true and the backlog quota of {topic} ({quota}) do not fit. The entries that a task "
            "has still to read count as backlog. At the limit the broker refuses the topic's producers until the read "
            "has ended. Read without retainWhileReading, or lift the quota meanwhile."
            for quota in admin.keeping(physical).quotas
            if not quota.evicts
        ]
    return found
