"""Whether brokers drop duplicates on the topics of a sink, as the admin API tells."""

from __future__ import annotations

from collections.abc import Iterable

from eos.doctor.retention import asking
from eos.errors import InvalidInput
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import namespace_of, physical_topics, whole_topic


def check_deduplicated(admin_url: str, client: Client, topic: str) -> None:
    """Refuse a topic on which the broker does not drop duplicates. Raises InvalidInput, also for an unusable URL."""
    with asking(admin_url, client.cluster) as admin:
        check_deduplication(admin, physical_topics(topic, client.partitions(topic)))


def check_deduplication(admin: Admin, topics: Iterable[str]) -> None:
    """Refuse physical topics on which the broker does not drop duplicates.

    Raises InvalidInput with the command that switches it on, and what `Admin` raises.
    """
    for topic in topics:
        status = admin.deduplication(topic)
        if status != "Enabled":
            whole = whole_topic(topic)
            raise InvalidInput(
                f'guarantee="deduplicated" needs broker deduplication, and on {topic} it is {status}. Switch it on for '
                f"the topic: pulsar-admin topicPolicies set-deduplication --enable {whole}; for all of its namespace: "
                f"pulsar-admin namespaces set-deduplication --enable {namespace_of(whole)}; or for the brokers: "
                "brokerDeduplicationEnabled=true in broker.conf"
            )
