"""Topics at random on three bookies, and what the brokers gave of them while all was well."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar, cast

import httpx
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from eos.by_name.data_source import PulsarDataSource
from eos.history.segments import Segments, segments_of
from eos.local import LocalCluster
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch import PulsarReader
from tests.conftest import START_S
from tests.contract.raw import client
from tests.contract.test_history import SMALL_LEDGERS
from tests.encryption import key_pair
from tests.soak.topic_shapes import KEY_NAME, ShapedTopic, counted
from tests.waiting import PATIENCE_S, until

REPLICATION = {"changing": (2, 2, 2), "striped": (3, 2, 2), "whole": (3, 3, 2)}
"""Kinds of topics: bookies of a ledger, copies of an entry, and copies that are waited for. When one of two bookies
dies, the third takes its place in the ledger that is written to."""
_IN_TURN = ("changing", "changing", "striped", "whole")
_TWO_OF_THREE = {f"managedLedgerDefault{one}": 2 for one in ("EnsembleSize", "WriteQuorum", "AckQuorum")}
_TOPICS_OF_A_NAMESPACE = 50
"""About. A broker that loads a topic reads what its namespace has noted of the transactions of all topics."""
_PLANNED_TOGETHER = 4
SIDE_BY_SIDE = 16
MADE = (HTTPStatus.NO_CONTENT, HTTPStatus.CONFLICT)
"""Answers to the making of a topic: it is made, also by a try before whose answer was an error."""

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


@contextmanager
def three_bookies() -> Iterator[LocalCluster]:
    """Run a cluster whose ledgers have few entries."""
    with LocalCluster(settings=SMALL_LEDGERS | _TWO_OF_THREE, start_timeout_s=START_S) as running:
        yield running


def described(entries: Sequence[Entry]) -> Described:
    """Return entries as they are stored: most of a message in chunks, and an encrypted one, can't be unpacked alone."""
    return [(entry.id, entry.metadata.SerializeToString(), bytes(entry.packed)) for entry in entries]


def each(do: Callable[[One], Other], of: Sequence[One], side_by_side: int = SIDE_BY_SIDE) -> list[Other]:
    with ThreadPoolExecutor(side_by_side) as pool:
        return list(pool.map(do, of))


def write_topics(
    cluster: LocalCluster, folder: Path, count: int, trouble: Callable[[], AbstractContextManager[None]]
) -> Written:
    """Write topics at random, each in two visits, and note what the brokers give of them.

    Args: the cluster; a folder for the keys; how many topics; what lasts while those of the kind "changing" are visited
    for the second time.
    """
    keys = key_pair()
    _, key_file = keys.write(folder, KEY_NAME)
    with (
        client(cluster.service_url) as ours,
        Admin(cluster.admin_url) as admin,
        httpx.Client(base_url=f"{cluster.admin_url}/admin/v2/", timeout=60, follow_redirects=True) as http,
    ):
        coordinators = [ours.coordinator(index) for index in range(2)]
        began = time.monotonic()
        for group in range(0, count, _TOPICS_OF_A_NAMESPACE):
            _make_namespaces(http, group // _TOPICS_OF_A_NAMESPACE)

        def create(seed: int) -> ShapedTopic:
            kind, group = _IN_TURN[seed % len(_IN_TURN)], seed // _TOPICS_OF_A_NAMESPACE
            path = f"public/{kind}-{group}/segments-{seed}-{uuid.uuid4().hex[:10]}"
            # A broker that is just taking over a new namespace may answer with an error.
            until(lambda: http.put(f"persistent/{path}").status_code in MADE, f"{path} was not made")
            ours.subscription(f"persistent://{path}", "keeps", initial="earliest").close()
            return ShapedTopic(http, ours, coordinators, f"persistent://{path}", random.Random(seed), keys)

        topics = each(create, range(count))
        changing = [one for one in topics if "/changing-" in one.topic]
        others = [one for one in topics if "/changing-" not in one.topic]
        print(f"{count} topics made after {time.monotonic() - began:.0f} s")
        for some, last in ((topics, False), (others, True)):
            each(lambda one, last=last: one.visit(last=last), some)  # type: ignore[misc]
        with trouble():
            each(lambda one: one.visit(last=True), changing)
        print(f"written after {time.monotonic() - began:.0f} s: {dict(counted(topics))}")
        told = each(lambda one: _told(ours, admin, one.topic), topics)
    print(f"{sum(len(one.entries) for one in told)} entries came after {time.monotonic() - began:.0f} s")
    return Written(told, key_file)


def _make_namespaces(http: httpx.Client, group: int) -> None:
    for kind, (ensemble, write_quorum, ack_quorum) in REPLICATION.items():
        http.put(f"namespaces/public/{kind}-{group}", json={}).raise_for_status()
        policy = {
            "bookkeeperEnsemble": ensemble,
            "bookkeeperWriteQuorum": write_quorum,
            "bookkeeperAckQuorum": ack_quorum,
            "managedLedgerMaxMarkDeleteRate": 0,
        }
        http.post(f"namespaces/public/{kind}-{group}/persistence", json=policy).raise_for_status()


def _told(ours: Client, admin: Admin, topic: str) -> Told:
    entries: list[Entry] = []
    with closing(ours.entry_reader(topic, None)) as reader:
        end, _ = reader.last_message_id()
        assert end is not None, topic
        while not entries or entries[-1].id < end:
            entries += reader.read(PATIENCE_S)
    return Told(topic, segments_of(admin, topic), end, described([one for one in entries if one.id <= end]))


@dataclass(frozen=True)
class Planned:
    """Tables of some topics each, and their tasks as they were planned while all was well."""

    tasks: list[tuple[PulsarReader, InputPartition]]

    def rows(self, side_by_side: int = SIDE_BY_SIDE) -> pa.Table:
        """Return what the tasks read, in order; without where a task's rows lie among the others'."""
        read = each(lambda task: list(task[0].read(task[1])), self.tasks, side_by_side)
        rows = pa.Table.from_batches([batch for batches in read for batch in batches])
        return rows.sort_by([("__topic", "ascending"), ("__messageId", "ascending")])


def planned(cluster: LocalCluster, written: Written, topics: Sequence[str], parts: int = 1, **more: str) -> Planned:
    """Plan a read of topics, each in so many parts."""

    def plan(some: Sequence[str]) -> list[tuple[PulsarReader, InputPartition]]:
        given = {
            "service.url": cluster.service_url,
            "admin.url": cluster.admin_url,
            "topics": ",".join(some),
            "decryption_keys": f'{{"{KEY_NAME}": "file:{written.key_file}"}}',
        }
        if parts > 1:
            given["minPartitions"] = str(parts * len(some))
        source = PulsarDataSource(given | {name.replace("__", "."): text for name, text in more.items()})
        reader = cast(PulsarReader, source.reader(source.schema()))
        return [(reader, task) for task in reader.partitions()]

    groups = [topics[at : at + _PLANNED_TOGETHER] for at in range(0, len(topics), _PLANNED_TOGETHER)]
    return Planned([task for group in each(plan, groups) for task in group])
