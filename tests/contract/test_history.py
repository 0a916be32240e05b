"""Random histories of transactions on a real broker: by the rule of visibility, bookies give what readers get."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass

import httpx
import pytest

from eos.bookkeeper import Bookies
from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from eos.errors import NetworkError
from eos.history.reader import HistoryReader
from eos.history.segments import segments_of
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.coordinator import Coordinator
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.txn import TxnId
from tests.conftest import create_topic
from tests.contract.raw import client
from tests.waiting import PATIENCE_S

BEGINNING = EntryId(-1, -1)
STEPS = 30

# Ledgers of five entries, and snapshots of the transaction buffer after each three transactions.
SMALL_LEDGERS = {
    "managedLedgerMaxEntriesPerLedger": 5,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "transactionBufferSnapshotMaxTransactionCount": 3,
    "transactionBufferSnapshotMinTimeInMillis": 200,
}

MakePulsar = Callable[..., LocalPulsar]


@dataclass
class Running:
    """One broker, its bookie, and how both are asked."""

    pulsar: LocalPulsar
    ours: Client
    admin: Admin
    bookies: Bookies

    def by_broker(self, topic: str, end: EntryId) -> list[Entry]:
        """Return what a reader gets up to an entry."""
        entries: list[Entry] = []
        with closing(self.ours.entry_reader(topic, None)) as reader:
            while not entries or entries[-1].id < end:
                entries += reader.read(PATIENCE_S)
        return [entry for entry in entries if entry.id <= end]

    def by_bookies(self, topic: str, start: EntryId, end: EntryId) -> list[Entry]:
        """Return what the rule shows of a range."""
        return list(HistoryReader(topic, segments_of(self.admin, topic), self.bookies).read(start, end))

    def unload(self, topic: str) -> None:
        """Have the broker let go of a topic, so that it is recovered."""
        where = f"{self.pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload"
        httpx.put(where, timeout=30, follow_redirects=True).raise_for_status()


@pytest.fixture
def running(start_pulsar: MakePulsar) -> Iterator[Running]:
    pulsar = start_pulsar(settings=SMALL_LEDGERS)
    with (
        client(pulsar.service_url) as ours,
        Admin(pulsar.admin_url) as admin,
        ZooKeeperMetadata(pulsar.zookeeper) as zookeeper,
        Bookies(zookeeper.address) as bookies,
    ):
        yield Running(pulsar, ours, admin, bookies)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 200), marks=pytest.mark.soak)], ids=["few", "many"])
def test_bookies_and_brokers_give_the_same_rows_of_random_histories(running: Running, seeds: range) -> None:
    compared = hidden = 0
    for seed in seeds:
        topic = create_topic(running.pulsar.admin_url, f"history-{seed}")
        running.ours.subscription(topic, "keeps", initial="earliest").close()
        for last in history(running, topic, random.Random(seed)):
            end, _ = last
            theirs = running.by_broker(topic, end)
            assert described(running.by_bookies(topic, BEGINNING, end)) == described(theirs), f"seed {seed} to {end}"
            cut = random.Random(seed).choice(theirs).id
            parts = [*running.by_bookies(topic, BEGINNING, cut), *running.by_bookies(topic, cut, end)]
            assert described(parts) == described(theirs), f"seed {seed}, cut at {cut}"
            compared += len(theirs)
            hidden += last[1] - len(theirs)
    print(f"{len(seeds)} histories: {compared} visible entries compared, {hidden} others hidden")
    assert compared > 20 * len(seeds)
    assert hidden > 5 * len(seeds)


def described(entries: list[Entry]) -> list[tuple[EntryId, bytes, bytes]]:
    return [(entry.id, entry.metadata.SerializeToString(), bytes(entry.payload)) for entry in entries]


def history(running: Running, topic: str, choose: random.Random) -> Iterator[tuple[EntryId, int]]:
    """Write to a topic at random; now and then yield its last readable entry, and how many entries are stored."""
    coordinators = [running.ours.coordinator(index) for index in range(2)]
    under_way: list[tuple[Coordinator, TxnId]] = []
    sent = 0

    def send(txn: TxnId | None) -> None:
        nonlocal sent
        last = sent + choose.randint(1, 3)
        while sent < last:
            # A broker may close a producer of a topic that it has just unloaded. Another sends the rest.
            with suppress(NetworkError), running.ours.producer(topic) as producer:
                while sent < last:
                    producer.send_record(b"row %d" % sent, txn)
                    sent += 1

    for _ in range(STEPS):
        roll = choose.random()
        if roll < 0.25:
            send(None)
        elif roll < 0.45 or not under_way:
            coordinator = choose.choice(coordinators)
            txn = coordinator.new_transaction(300_000)
            coordinator.add_partitions(txn, [topic])
            under_way.append((coordinator, txn))
            send(txn)
        elif roll < 0.65:
            send(choose.choice(under_way)[1])
        elif roll < 0.92:
            coordinator, txn = under_way.pop(choose.randrange(len(under_way)))
            coordinator.end(txn, choose.random() < 0.55)
        else:
            running.unload(topic)
        if choose.random() < 0.1:
            yield from last_of(running, topic)
    for coordinator, txn in under_way:
        coordinator.end(txn, choose.random() < 0.5)
    send(None)
    yield from last_of(running, topic)


def last_of(running: Running, topic: str) -> Iterator[tuple[EntryId, int]]:
    with closing(running.ours.entry_reader(topic, None)) as reader:
        last, _ = reader.last_message_id()
    if last is not None:
        segments = segments_of(running.admin, topic).segments
        yield (
            last,
            sum(
                min(one.last, last.entry) + 1 if one.ledger == last.ledger else one.last + 1
                for one in segments
                if one.ledger <= last.ledger
            ),
        )
