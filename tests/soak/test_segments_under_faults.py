"""Three bookies, random histories: what the bookies give stays what the brokers gave, whatever fails among them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import httpx
import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition

from eos.bookkeeper import Bookies
from eos.by_name.data_source import PulsarDataSource
from eos.history.reader import HistoryReader, HistoryUnavailable
from eos.history.segments import Segments, segments_of
from eos.local import LocalCluster
from eos.pulsar.net.admin import Admin
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch import PulsarReader
from tests.conftest import create_topic
from tests.contract.raw import client
from tests.contract.test_history import BEGINNING, SMALL_LEDGERS, Running, described, history
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

TOPICS = 100
STRIPED = "public/striped"
BROKERS = ("broker-0", "broker-1")


@dataclass(frozen=True)
class Told:
    """What the brokers told of one topic, and gave of it, while all was well."""

    topic: str
    segments: Segments
    end: EntryId
    entries: list[tuple[EntryId, bytes, bytes]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(settings=SMALL_LEDGERS) as running:
        namespace = f"{running.admin_url}/admin/v2/namespaces/{STRIPED}"
        httpx.put(namespace, json={}, timeout=30).raise_for_status()
        two_of_three = {
            "bookkeeperEnsemble": 3,
            "bookkeeperWriteQuorum": 2,
            "bookkeeperAckQuorum": 2,
            "managedLedgerMaxMarkDeleteRate": 0,
        }
        httpx.post(f"{namespace}/persistence", json=two_of_three, timeout=30).raise_for_status()
        yield running


@pytest.fixture(scope="module")
def told(cluster: LocalCluster) -> list[Told]:
    """Histories of TOPICS topics, every other one striped."""
    found = []
    with client(cluster.service_url) as ours, Admin(cluster.admin_url) as admin, Bookies() as bookies:
        running = Running(cluster, ours, admin, bookies)  # type: ignore[arg-type]  # of a cluster only its admin URL is used
        for seed in range(TOPICS):
            namespace = STRIPED if seed % 2 else "public/default"
            topic = create_topic(cluster.admin_url, f"segments-{seed}", namespace=namespace)
            ours.subscription(topic, "keeps", initial="earliest").close()
            ends = [end for end, _ in history(running, topic, random.Random(seed))]
            found.append(
                Told(topic, segments_of(admin, topic), ends[-1], described(running.by_broker(topic, ends[-1])))
            )
    return found


def by_bookies(one: Told, start: EntryId = BEGINNING) -> list[tuple[EntryId, bytes, bytes]]:
    with Bookies(timeout_s=3) as bookies:
        return described(
            list(HistoryReader(one.topic, one.segments, bookies, patience_s=PATIENCE_S).read(start, one.end))
        )


def wipe(cluster: LocalCluster, name: str) -> None:
    """Take from a bookie what it stores, but not its identity."""
    cluster[name].kill()
    current = cluster[name].home / "data" / "current"
    assert (current / "VERSION").exists()
    for path in current.iterdir():
        if path.name != "VERSION":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    cluster.restart(name)


def planned(cluster: LocalCluster, told: list[Told], read_from: str) -> tuple[PulsarReader, list[InputPartition]]:
    """Return a table of all topics, and its tasks."""
    given = {"service.url": cluster.service_url, "admin.url": cluster.admin_url, "read.from": read_from}
    source = PulsarDataSource(given | {"topics": ",".join(one.topic for one in told), "minPartitions": str(3 * TOPICS)})
    reader = cast(PulsarReader, source.reader(source.schema()))
    return reader, list(reader.partitions())


def rows_of(reader: PulsarReader, tasks: list[InputPartition]) -> pa.Table:
    """Return what the tasks read, in order; without where a task's rows lie among the others'."""
    rows = pa.Table.from_batches([batch for task in tasks for batch in reader.read(task)])
    return rows.sort_by([("__topic", "ascending"), ("__messageId", "ascending")])


def differing(told: list[Told], choose: random.Random) -> list[str]:
    """Return the topics whose bookies give anything else, from the beginning or from an entry chosen at random."""
    wrong = []
    for one in told:
        place = choose.randrange(len(one.entries))
        start, rest = one.entries[place][0], one.entries[place + 1 :]
        if by_bookies(one) != one.entries or by_bookies(one, start) != rest:
            wrong.append(one.topic)
    return wrong


def test_bookies_give_what_the_brokers_gave_or_say_that_they_cannot(cluster: LocalCluster, told: list[Told]) -> None:
    choose = random.Random(1)
    print(f"{sum(len(one.entries) for one in told)} entries of {len(told)} topics")
    assert differing(told, choose) == [], "all alive"

    cluster["bookie-0"].kill()
    assert differing(told, choose) == [], "one bookie dead"
    cluster.restart("bookie-0")

    cluster["bookie-1"].pause()
    assert differing(told, choose) == [], "one bookie paused"
    cluster["bookie-1"].resume()

    wipe(cluster, "bookie-2")
    assert differing(told, choose) == [], "one bookie wiped"

    by_brokers = rows_of(*planned(cluster, told, "brokers"))
    reader, tasks = planned(cluster, told, "bookies")
    for broker in BROKERS:
        cluster[broker].kill()
    assert differing(told, choose) == [], "all brokers down, and one bookie still wiped"
    assert rows_of(reader, tasks).equals(by_brokers), "every column of a table planned before the brokers went down"

    cluster["bookie-0"].kill()
    beginnings = [read_as_far_as_it_goes(one) for one in told]
    assert any(beginnings), "nothing was missing of any topic"


def read_as_far_as_it_goes(one: Told) -> bool:
    """Read while one bookie is dead and another wiped. Returns whether it ended early, which it must then say."""
    came: list[Entry] = []
    with Bookies(timeout_s=1) as bookies:
        reader = HistoryReader(one.topic, one.segments, bookies, patience_s=1)
        try:
            for entry in reader.read(BEGINNING, one.end):
                came.append(entry)
        except HistoryUnavailable:
            assert described(came) == one.entries[: len(came)], one.topic
            return True
    assert described(came) == one.entries, one.topic
    return False
