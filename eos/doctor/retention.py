"""What the admin API, where it is known, tells about the control topic: what deletes its records, what holds it up."""

from __future__ import annotations

import time

from eos.config import Cluster
from eos.errors import InvalidInput, NetworkError
from eos.pulsar.net.admin import Admin


def check_retention(admin_url: str, cluster: Cluster, control_topic: str) -> None:
    """Refuse a control topic whose records would be deleted while the job is down.

    A durable subscription keeps the records, but a message TTL and an evicting backlog
    quota delete unacknowledged ones all the same.

    Raises:
        InvalidInput: a TTL or quota is in force; the message has the command that lifts it.
        NetworkError: the admin API can't be reached, or refuses.
    """
    with Admin(admin_url, cluster.credentials, cluster.tls, cluster.request_timeout_s) as admin:
        keeping = admin.keeping(control_topic)
    if keeping.ttl_s > 0:
        raise InvalidInput(
            f"A message TTL of {keeping.ttl_s} s is in force on the control topic {control_topic}: its records would "
            "be gone after the job was down that long, and with them the knowledge of what is committed. Exempt the "
            "topic: "
            f"pulsar-admin topicPolicies set-message-ttl --ttl 0 {control_topic}"
        )
    if keeping.evicts_backlog:
        raise InvalidInput(
            f"A backlog quota that evicts messages is in force on the control topic {control_topic}, and would delete "
            "the knowledge of what is committed. Set another policy for the topic: "
            f"pulsar-admin topicPolicies set-backlog-quota --policy producer_exception {control_topic}"
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
            f"transaction {one.txn}, {one.status}, opened {(now_ms - one.opened_ms) / 1000:.0f} s ago, "
            f"ends by itself after {one.ttl_ms / 1000:.0f} s, on {', '.join(one.partitions) or 'no topic yet'}"
            for one in found
        )
        or None
    )
