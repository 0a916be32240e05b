"""Three bookies, topics at random: what the bookies give stays what the brokers gave, whatever fails among them."""

from __future__ import annotations

import logging
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

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
from eos.pulsar.net.client import Client
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch import PulsarReader
from tests.conftest import START_S, create_topic
from tests.contract.raw import client
from tests.contract.test_history import BEGINNING, SMALL_LEDGERS
from tests.encryption import key_pair
from tests.soak.topic_shapes import KEY_NAME, ShapedTopic, counted
from tests.topic_commands import compact
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

TOPICS = int(os.environ.get("EOS_SOAK_TOPICS", "100"))
COMPACTED = max(1, TOPICS // 20)
CHANGING, STRIPED, WHOLE = "public/default", "public/striped", "public/whole"
REPLICATION = {STRIPED: (3, 2, 2), WHOLE: (3, 3, 2)}
"""Bookies of a ledger, copies of an entry, and copies that are waited for. Elsewhere two, two and two: when one of the
two bookies dies, the third takes its place in the ledger that is written to."""
TWO_OF_THREE = {f"managedLedgerDefault{one}": 2 for one in ("EnsembleSize", "WriteQuorum", "AckQuorum")}
BROKERS = ("broker-0", "broker-1")
SIDE_BY_SIDE = 8

One = TypeVar("One")
Other = TypeVar("Other")
Described = list[tuple[EntryId, bytes, bytes]]


@dataclass(frozen=True)
class Told:
    """What the brokers told of one topic, and gave of it, while all was well."""

    topic: str
    segments: Segments
    end: EntryId
    entries: Described


@dataclass(frozen=True)
class Written:
    """All topics, and the file of the private key that reads the encrypted ones."""

    told: list[Told]
    key_file: Path

    @property
    def topics(self) -> list[str]:
        return [one.topic for one in self.told]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(settings=SMALL_LEDGERS | TWO_OF_THREE, start_timeout_s=START_S) as running:
        for name, (ensemble, write_quorum, ack_quorum) in REPLICATION.items():
            namespace = f"{running.admin_url}/admin/v2/namespaces/{name}"
            httpx.put(namespace, json={}, timeout=30).raise_for_status()
            policy = {
                "bookkeeperEnsemble": ensemble,
                "bookkeeperWriteQuorum": write_quorum,
                "bookkeeperAckQuorum": ack_quorum,
                "managedLedgerMaxMarkDeleteRate": 0,
            }
            httpx.post(f"{namespace}/persistence", json=policy, timeout=30).raise_for_status()
        yield running


def described(entries: Sequence[Entry]) -> Described:
    """Return entries as they are stored: most of a message in chunks, and an encrypted one, can't be unpacked alone."""
    return [(entry.id, entry.metadata.SerializeToString(), bytes(entry.packed)) for entry in entries]


def each(do: Callable[[One], Other], of: Sequence[One]) -> list[Other]:
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(do, of))


@pytest.fixture(scope="module")
def written(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """TOPICS topics; while those with two copies are written to for the second time, one bookie is dead."""
    keys = key_pair()
    _, key_file = keys.write(tmp_path_factory.mktemp("keys"), KEY_NAME)
    with client(cluster.service_url) as ours, Admin(cluster.admin_url) as admin:
        coordinators = [ours.coordinator(index) for index in range(2)]

        def create(seed: int) -> ShapedTopic:
            namespace = (CHANGING, CHANGING, STRIPED, WHOLE)[seed % 4]
            topic = create_topic(cluster.admin_url, f"segments-{seed}", namespace=namespace)
            ours.subscription(topic, "keeps", initial="earliest").close()
            return ShapedTopic(cluster, ours, coordinators, topic, random.Random(seed), keys)

        began = time.monotonic()
        topics = each(create, range(TOPICS))
        changing = [one for one in topics if CHANGING in one.topic]
        others = [one for one in topics if CHANGING not in one.topic]
        for some, last in ((topics, False), (others, True)):
            each(lambda one, last=last: one.visit(last=last), some)  # type: ignore[misc]
        cluster["bookie-0"].kill()
        each(lambda one: one.visit(last=True), changing)
        cluster.restart("bookie-0")
        for one in topics[:COMPACTED]:
            compact(cluster.admin_url, one.topic)
        print(f"{len(topics)} topics written in {time.monotonic() - began:.0f} s: {dict(counted(topics))}")
        told = each(lambda one: what_brokers_tell(ours, admin, one.topic), topics)
        moved = sum(
            len(segment.metadata.ensembles) > 1 for one in told for segment in one.segments.segments if segment.metadata
        )
        print(f"{sum(len(one.entries) for one in told)} entries, {moved} ledgers whose bookies changed")
        assert moved, "no ledger changed its bookies while it was written to"
        yield Written(told, key_file)


def what_brokers_tell(ours: Client, admin: Admin, topic: str) -> Told:
    entries: list[Entry] = []
    with closing(ours.entry_reader(topic, None)) as reader:
        end, _ = reader.last_message_id()
        assert end is not None, topic
        while not entries or entries[-1].id < end:
            entries += reader.read(PATIENCE_S)
    return Told(topic, segments_of(admin, topic), end, described([one for one in entries if one.id <= end]))


def by_bookies(bookies: Bookies, one: Told, start: EntryId = BEGINNING) -> Described:
    return described(list(HistoryReader(one.topic, one.segments, bookies, patience_s=PATIENCE_S).read(start, one.end)))


def differing(written: Written, cuts: Callable[[Told], Sequence[int]]) -> list[str]:
    """Return the topics whose bookies give anything else, from the beginning or after one of these entries."""

    with Bookies(timeout_s=3) as bookies:

        def differs(one: Told) -> bool:
            wanted = [(BEGINNING, one.entries), *((one.entries[cut][0], one.entries[cut + 1 :]) for cut in cuts(one))]
            return any(by_bookies(bookies, one, start) != rest for start, rest in wanted)

        return [one.topic for one, wrong in zip(written.told, each(differs, written.told), strict=True) if wrong]


def every(one: Told) -> Sequence[int]:
    return range(len(one.entries))


def wipe(cluster: LocalCluster, name: str) -> None:
    """Take from a bookie what it stores, but not its identity."""
    cluster[name].kill()
    current = cluster[name].home / "data" / "current"
    assert (current / "VERSION").exists()
    for path in current.iterdir():
        if path.name != "VERSION":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    cluster.restart(name)


@dataclass(frozen=True)
class Planned:
    """A table, and its tasks as they were planned while all was well."""

    reader: PulsarReader
    tasks: list[InputPartition]

    def rows(self) -> pa.Table:
        """Return what the tasks read, in order; without where a task's rows lie among the others'."""
        read = each(lambda task: list(self.reader.read(task)), self.tasks)
        rows = pa.Table.from_batches([batch for batches in read for batch in batches])
        return rows.sort_by([("__topic", "ascending"), ("__messageId", "ascending")])


def planned(cluster: LocalCluster, written: Written, topics: Sequence[str], **more: str) -> Planned:
    given = {
        "service.url": cluster.service_url,
        "admin.url": cluster.admin_url,
        "topics": ",".join(topics),
        "decryption_keys": f'{{"{KEY_NAME}": "file:{written.key_file}"}}',
    }
    source = PulsarDataSource(given | {name.replace("__", "."): text for name, text in more.items()})
    reader = cast(PulsarReader, source.reader(source.schema()))
    return Planned(reader, list(reader.partitions()))


def test_bookies_give_what_the_brokers_gave_or_say_that_they_cannot(
    cluster: LocalCluster, written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    choose = random.Random(1)

    def one_cut(one: Told) -> Sequence[int]:
        return [choose.randrange(len(one.entries))]

    caplog.set_level(logging.WARNING, "eos.source")
    by_brokers = planned(cluster, written, written.topics).rows()
    whole = planned(cluster, written, written.topics, read__from="bookies")
    in_parts = planned(cluster, written, written.topics, read__from="bookies", minPartitions=str(4 * TOPICS))
    print(f"{by_brokers.num_rows} rows of {by_brokers.num_columns} columns, {len(in_parts.tasks)} tasks")

    def check(state: str, cuts: Callable[[Told], Sequence[int]] = one_cut, *, brokers: bool = True) -> None:
        began = time.monotonic()
        caplog.clear()
        assert differing(written, cuts) == [], state
        assert whole.rows().equals(by_brokers), state
        if brokers:  # a part that begins between the chunks of a message reads the chunks before it through a broker
            assert in_parts.rows().equals(by_brokers), state
        assert not [one for one in caplog.messages if "through its brokers" in one], state
        print(f"{state}: equal, after {time.monotonic() - began:.0f} s")

    compacted = {"topics": written.topics[:COMPACTED], "readCompacted": "true"}
    left = planned(cluster, written, **compacted).rows()  # type: ignore[arg-type]
    assert planned(cluster, written, **compacted, read__from="bookies").rows().equals(left)  # type: ignore[arg-type]
    print(f"{left.num_rows} rows are left of {COMPACTED} compacted topics")

    check("all alive, each cut", every)
    check("all alive, read again")

    cluster["bookie-0"].kill()
    check("one bookie dead")
    cluster.restart("bookie-0")

    cluster["bookie-1"].pause()
    check("one bookie paused")
    cluster["bookie-1"].resume()

    wipe(cluster, "bookie-2")
    check("one bookie wiped")

    for broker in BROKERS:
        cluster[broker].kill()
    check("all brokers down, and one bookie still wiped", brokers=False)

    cluster["bookie-0"].kill()
    beginnings = [read_as_far_as_it_goes(one) for one in written.told]
    assert any(beginnings), "nothing was missing of any topic"
    print(f"one bookie dead and another wiped: {sum(beginnings)} topics ended early and said so, the others came whole")


def read_as_far_as_it_goes(one: Told) -> bool:
    """Read while one bookie is dead and another wiped. Returns whether it ended early, which it must then say."""
    came: list[Entry] = []
    with Bookies(timeout_s=1) as bookies:
        reader = HistoryReader(one.topic, one.segments, bookies, patience_s=0.1)
        try:
            for entry in reader.read(BEGINNING, one.end):
                came.append(entry)
        except HistoryUnavailable:
            assert described(came) == one.entries[: len(came)], one.topic
            return True
    assert described(came) == one.entries, one.topic
    return False
