"""Ledgers of a real Pulsar read from its real bookie, beside what the broker gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pulsar as official
import pytest

from eos.bookkeeper import (
    Bookies,
    BookieUnavailable,
    EntryMissing,
    LedgerMetadata,
    LedgerReader,
    LedgerState,
    MetadataUnreadable,
    parse_printed,
)
from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from tests.conftest import MakeTopic
from tests.vectors.broker_classes import ask
from tests.vectors.ledgers import METADATA, STORED

ENTRIES = 60


def test_bookkeepers_classes_write_what_the_vectors_hold() -> None:
    said = ask("ledgers")
    assert [one["printed"] for one in said if one["kind"] == "metadata"] == [one["printed"] for one in METADATA]
    assert [one["stored"] for one in said if one["kind"] == "stored"] == [one.hex() for one in STORED.values()]


@pytest.fixture
def topic(make_topic: MakeTopic, theirs: official.Client) -> Iterator[str]:
    """A topic of ENTRIES messages, one to an entry, in one open ledger."""
    name = make_topic("ledger")
    theirs.subscribe(name, "keeps")
    producer = theirs.create_producer(name, batching_enabled=False)
    for number in range(ENTRIES):
        producer.send(f"message {number}".encode())
    yield name
    producer.close()


@pytest.fixture
def zookeeper(pulsar: Any) -> Iterator[ZooKeeperMetadata]:
    with ZooKeeperMetadata(pulsar.zookeeper) as opened:
        yield opened


@pytest.fixture
def bookies(zookeeper: ZooKeeperMetadata) -> Iterator[Bookies]:
    """The bookie of a standalone Pulsar has an id of its own, "bk0test": only ZooKeeper knows its address."""
    with Bookies(zookeeper.address) as opened:
        yield opened


def metadata_of(pulsar: Any, topic: str) -> LedgerMetadata:
    """Ask the admin API where the topic's first ledger lies."""
    path = topic.removeprefix("persistent://")
    answer = httpx.get(f"{pulsar.admin_url}/admin/v2/persistent/{path}/internalStats?metadata=true", timeout=30)
    ledger = answer.raise_for_status().json()["ledgers"][0]
    return parse_printed(ledger["ledgerId"], ledger["metadata"])


@pytest.mark.parametrize("batch_bytes", [1, 500, 2**22])
def test_the_entries_of_an_open_ledger_come_from_the_bookie(
    topic: str, pulsar: Any, bookies: Bookies, batch_bytes: int
) -> None:
    metadata = metadata_of(pulsar, topic)
    assert metadata.state is LedgerState.OPEN
    reader = LedgerReader(bookies, metadata, batch_bytes=batch_bytes)
    entries = list(itertools.chain.from_iterable(reader.read(0, ENTRIES - 1)))
    assert [number for number, _ in entries] == list(range(ENTRIES))
    assert all(payload.endswith(f"message {number}".encode()) for number, payload in entries)


def test_reading_an_open_ledger_does_not_fence_its_writer(
    topic: str, pulsar: Any, bookies: Bookies, theirs: official.Client
) -> None:
    metadata = metadata_of(pulsar, topic)
    list(LedgerReader(bookies, metadata).read(0, ENTRIES - 1))
    producer = theirs.create_producer(topic, batching_enabled=False)
    sent = producer.send(b"one more")
    assert (sent.ledger_id(), sent.entry_id()) == (metadata.ledger, ENTRIES)
    ((_, payload),) = itertools.chain.from_iterable(LedgerReader(bookies, metadata).read(ENTRIES, ENTRIES))
    assert payload.endswith(b"one more")


def test_an_entry_and_a_ledger_that_the_bookie_lacks_are_missing(topic: str, pulsar: Any, bookies: Bookies) -> None:
    metadata = metadata_of(pulsar, topic)
    for ledger, entry in ((metadata.ledger, 10**6), (10**9, 0)):
        told = LedgerMetadata(ledger, metadata.state, 1, 1, 1, metadata.ensembles)
        with pytest.raises(EntryMissing, match=f"entry {ledger}:{entry} is lost"):
            list(LedgerReader(bookies, told, patience_s=0).read(entry, entry))


def test_zookeeper_tells_the_same_metadata_as_the_admin_api(
    topic: str, pulsar: Any, zookeeper: ZooKeeperMetadata
) -> None:
    printed = metadata_of(pulsar, topic)
    found = zookeeper.metadata(printed.ledger)
    assert (found.ensembles, found.digest, found.state) == (printed.ensembles, printed.digest, printed.state)
    assert found.custom == printed.custom
    with pytest.raises(EntryMissing, match="ledger 1000000000 no longer exists"):
        zookeeper.metadata(10**9)
    with pytest.raises(MetadataUnreadable, match="/elsewhere/LAYOUT"):
        ZooKeeperMetadata(pulsar.zookeeper, "/elsewhere")


def test_without_a_way_to_its_address_a_bookie_with_an_id_of_its_own_is_unavailable(topic: str, pulsar: Any) -> None:
    with Bookies() as bookies, pytest.raises(BookieUnavailable, match="bk0test could not be asked"):
        list(LedgerReader(bookies, metadata_of(pulsar, topic), patience_s=0).read(0, 0))
