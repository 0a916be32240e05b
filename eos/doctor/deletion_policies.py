"""The cluster's policies for the records and rows of sinks: policies that delete them, or shut producers out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from eos.commit.control_topic import HOLD, control_topic_in
from eos.doctor.check import Check, care, good, not_told
from eos.doctor.quotas import backlogs
from eos.doctor.sinks import SinkState
from eos.errors import NetworkError, TopicMissing
from eos.preflight.retention import dangers
from eos.pulsar.net.admin import Admin, if_there
from eos.pulsar.net.client import Client
from eos.pulsar.net.policies import REMOVE_ENTRY_FILTERS, TopicPolicies, entry_filters_apply
from eos.pulsar.protocol.topics import namespace_of, physical_topics

Kept = Callable[[str], TopicPolicies]
"""Returns the policies of a topic; the admin API is asked once for each, in five requests."""


def keeping(client: Client, admin: Admin, sinks: list[SinkState], namespace: str) -> Iterator[Check]:
    """Look at the control topic of each sink of a "tenant/namespace", and at the topics of its newest batch."""
    kept = cache(admin.keeping)
    for one in sinks:
        yield from keeping_of(client, admin, one.name, (control_topic_in(namespace, one.name),), one.topics, kept)


def keeping_of(
    client: Client, admin: Admin, name: str, logs: Iterable[str], rows: Iterable[str], kept: Kept
) -> Iterator[Check]:
    """Look at one sink. Args: its name, for the report; its control topic, if it has one; the topics of its rows."""
    logs, rows, of_quotas = tuple(logs), tuple(rows), partial(_of_quotas, client)
    for topic in logs:
        yield from _asked(_of_log, f"log of {name}", admin, kept, topic)
    for topic in rows:
        yield from _asked(_of_rows, f"rows of {name}", admin, kept, topic)
    for topic in (*logs, *rows):
        yield from _asked(of_quotas, f"backlog quota of {name}", admin, kept, topic)
        yield from _asked(_of_filters, f"entry filters of {name}", admin, kept, topic)


def _asked(
    look: Callable[[str, Admin, Kept, str], Iterator[Check]], about: str, admin: Admin, kept: Kept, topic: str
) -> Iterator[Check]:
    try:
        yield from look(about, admin, kept, topic)
    except (NetworkError, TopicMissing) as error:
        yield not_told(about, f"The policies of {topic} cannot be read: {error}", error)


def _of_log(about: str, admin: Admin, kept: Kept, topic: str) -> Iterator[Check]:
    found = [care(about, danger) for danger in dangers(kept(topic), topic)]
    retaining = sorted(one for one in admin.subscriptions(topic) if one.endswith(HOLD))  # perhaps after a prefix
    if len(retaining) > 1:
        found.append(
            care(
                about,
                f"Several subscriptions of {topic} retain its records: {', '.join(retaining)}. The sink uses the one "
                "with its subscription_prefix, or without a prefix. A run or a command with another prefix has made "
                "the others, which keep every record for ever. Delete these with pulsar-admin topics unsubscribe "
                f"--subscription NAME {topic}",
            )
        )
    if not retaining:
        found.append(
            care(
                about,
                f'The subscription "{HOLD}" of {topic} is gone, which retains its records. Retention may delete them '
                "by now. The sink makes it again when its query starts. Let nobody delete it.",
            )
        )
    clusters = admin.replicated_on(topic)
    if len(clusters) > 1:
        found.append(
            care(
                about,
                f"{topic} is replicated on {', '.join(clusters)}. Its records stay in their cluster all the same. But "
                "no replicator gets in while a driver is connected, so the log of this name in another cluster "
                "counts as replication backlog there, and no broker deletes a replicated topic. Keep each in its own "
                f"cluster with pulsar-admin topics set-replication-clusters --clusters CLUSTER {topic} (CLUSTER: the "
                "name of that cluster)",
            )
        )
    said = "No TTL, no backlog quota and no replicator touch it, and a subscription retains its records."
    yield from found or [good(about, said)]


def _of_rows(about: str, admin: Admin, kept: Kept, topic: str) -> Iterator[Check]:
    try:
        found = kept(topic)
    except TopicMissing:
        yield care(
            about,
            f"{topic}, to which its newest batch wrote, is not there any more, nor are its rows. A sink makes "
            f"no topics. Its next batch for this one is refused. Make it with pulsar-admin topics create {topic}",
        )
        return
    if not admin.subscriptions(topic) and 0 in (found.retention_minutes, found.retention_mb):
        yield care(
            about,
            f"{topic} has no retention and no subscription. Rows are deleted as soon as their ledger is closed, and "
            "later readers miss them. Subscribe first, or set a retention with pulsar-admin namespaces set-retention "
            f"--time 7d --size -1 {namespace_of(topic)}",
        )
        return
    told = f" A message TTL of {found.ttl_s} s passes over what a subscription leaves so long." if found.ttl_s else ""
    yield good(about, f"{topic} keeps rows for those who read later.{told}")


def _of_filters(about: str, admin: Admin, kept: Kept, topic: str) -> Iterator[Check]:
    if filters := if_there(admin.entry_filters, topic):
        yield care(
            about,
            f"{entry_filters_apply(filters, topic)} Readers do not get these entries, and a sink needs all records of "
            f"its control topic. Let the filters pass all entries, or {REMOVE_ENTRY_FILTERS}",
        )


def _of_quotas(client: Client, about: str, admin: Admin, kept: Kept, topic: str) -> Iterator[Check]:
    try:
        quotas = kept(topic).quotas
    except TopicMissing:  # it is told as such
        return
    yield from backlogs(about, admin, quotas, physical_topics(topic, client.partitions(topic)) if quotas else ())
