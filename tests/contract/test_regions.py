"""Facts about geo-replication: what another cluster's readers see of messages, local records, and transactions."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx
import pytest

from eos.config import Cluster
from eos.errors import Refused
from eos.inspect.rows import TopicRows
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from tests.clients import end, transaction
from tests.contract.raw import RawProducer
from tests.integration.source.queries import fail
from tests.regions import Regions
from tests.waiting import until


def seen_until(reader: Any, last: bytes) -> list[tuple[bytes | None, str | None]]:
    """Read on until this message has come, and return what was read, and which cluster each message is from."""
    seen: list[tuple[bytes | None, str | None]] = []

    def came() -> bool:
        message = reader.read(1)
        if message is not None:
            seen.append((message.data, message.replicated_from))
        return bool(seen) and seen[-1][0] == last

    until(came, f"{last!r} did not come")
    return seen


def test_a_local_record_is_not_replicated_and_one_that_was_says_from_where(regions: Regions) -> None:
    topic = regions.create_topic("records")
    with Client(Cluster(regions.east.service_url)) as sends, Client(Cluster(regions.west.service_url)) as reads:
        with sends.producer(topic) as producer:
            assert producer.name.startswith("east-")
            producer.send_record(b"before", None)
            producer.send_record(b"stays", None, local=True)
            producer.send_record(b"behind", None)
        seen = seen_until(reads.reader(topic), b"behind")
    assert seen == [(b"before", "east"), (b"behind", "east")]


def test_committed_rows_are_replicated_as_plain_messages_and_aborted_rows_are_not(regions: Regions) -> None:
    """Else the row of an open transaction would be readable there, or its number would be one of that cluster."""
    topic = regions.create_topic("transactions")
    with Client(Cluster(regions.east.service_url)) as east, Client(Cluster(regions.west.service_url)) as west:
        reader = west.reader(topic)
        committed, aborted = transaction(east, topic), transaction(east, topic)
        while (other := transaction(west, topic)) != committed:  # each cluster counts for itself
            assert other.least < committed.least
            end(west, other, commit=False)
        end(west, other, commit=False)
        with east.producer(topic) as producer:
            producer.send_record(b"plain", None)
            producer.send_record(b"committed 1", committed)
            producer.send_record(b"aborted", aborted)
            producer.send_record(b"committed 2", committed)
            producer.send_record(b"behind", None)
        assert seen_until(reader, b"plain") == [(b"plain", "east")]
        assert reader.read(1) is None  # also in this cluster what follows an open transaction waits
        end(east, aborted, commit=False)
        end(east, committed, commit=True)
        seen = seen_until(reader, b"behind")
    assert seen == [(row, "east") for row in (b"committed 1", b"committed 2", b"behind")]


def test_the_chunks_of_producers_of_one_name_in_both_clusters_make_two_messages(regions: Regions) -> None:
    """An application that names its producers has one name in each cluster, where it begins to count at 0."""
    topic = regions.create_topic("chunks")
    halves = {"east": (b"ea", b"st"), "west": (b"we", b"st")}
    senders = {name: RawProducer(here.service_url, topic, name="app") for name, here in regions.named().items()}
    stored = 0
    for number in range(2):
        for name, sender in senders.items():
            about = MessageMetadata(producer_name="app", sequence_id=0, publish_time=1, uuid="app-0", chunk_id=number)
            about.num_chunks_from_msg, about.total_chunk_msg_size = 2, 4
            sender.send_described(about, halves[name][number])
            assert isinstance(sender.event(), MessageId)
            stored += 1
            for here in regions.named().values():
                until(partial(has_entries, here, topic, stored), "an entry was not replicated")
    for sender in senders.values():
        sender.connection.close()
    for here in regions.named().values():
        rows = TopicRows(Cluster(here.service_url), topic, "earliest", fail).stored()
        assert [row.value for row in rows] == [b"east", b"west"]


def has_entries(cluster: LocalPulsar, topic: str, count: int) -> bool:
    with Admin(cluster.admin_url) as admin:
        return int(admin.internal_stats(topic)["entriesAddedCounter"]) == count


def keep(cluster: LocalPulsar, topic: str, name: str) -> None:
    """The request of `pulsar-admin topics set-replication-clusters --clusters`."""
    where = f"{cluster.admin_url}/admin/v2/{topic.replace('://', '/')}/replication"
    httpx.post(where, json=[name], timeout=30).raise_for_status()


def inbound(cluster: LocalPulsar, topic: str) -> bool:
    """Whether a replicator of the other cluster is connected to a topic without partitions, or to a partition."""
    told = httpx.get(f"{cluster.admin_url}/admin/v2/{topic.replace('://', '/')}/stats", timeout=30).json()
    return any(one.get("inboundConnection") for one in told.get("replication", {}).values())


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_topic_can_be_deleted_once_no_cluster_replicates_it_and_until_then_the_answer_says_so(
    regions: Regions, partitions: int
) -> None:
    topic = regions.create_topic(f"kept-{partitions}", partitions)
    east, west = Client(Cluster(regions.east.service_url)), Client(Cluster(regions.west.service_url))
    with east, west, Admin(regions.east.admin_url) as admin:

        def refused() -> str:
            try:
                (admin.delete_partitioned if partitions else admin.delete)(topic)
            except Refused as error:
                return error.code if "set-replication-clusters --clusters CLUSTER TOPIC" in error.advice else str(error)
            return ""

        assert admin.replicated_on(topic) == ("east", "west")
        for physical in east.physical_topics(topic):
            west.producer(physical).close()  # the broker loads it, and connects a replicator
            until(lambda one=physical: inbound(regions.east, one), "no replicator came")  # type: ignore[misc]
        assert refused() == "422"
        keep(regions.east, topic, "east")
        until(lambda: refused() == "412", "the policy is not in force")
        assert admin.replicated_on(topic) == ("east",)
        keep(regions.west, topic, "west")
        until(lambda: not refused(), "it can't be deleted", pause_s=0.2)
