"""Facts about geo-replication: what another cluster's readers see of messages, local records, and transactions."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from eos.config import Cluster
from eos.errors import InvalidInput, Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.contract.test_transactions import end, transaction
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


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_replicated_topic_is_not_deleted_and_the_answer_names_the_way_out(regions: Regions, partitions: int) -> None:
    topic = regions.create_topic(f"kept-{partitions}", partitions)
    with Client(Cluster(regions.east.service_url)) as client, Admin(regions.east.admin_url) as admin:
        for physical in client.physical_topics(topic):
            client.producer(physical).close()  # its broker has it, and a replicator
        with pytest.raises(Refused, match="set-replication-clusters --clusters CLUSTER TOPIC") as refused:
            (admin.delete_partitioned if partitions else admin.delete)(topic)
        assert isinstance(refused.value, InvalidInput)
        assert admin.replicated_on(topic) == ("east", "west")
        where = f"{regions.east.admin_url}/admin/v2/{topic.replace('://', '/')}/replication"
        httpx.post(where, json=["east"], timeout=30).raise_for_status()  # what the command asks for
        until(lambda: admin.replicated_on(topic) == ("east",), "the topic keeps its namespace's policy")
