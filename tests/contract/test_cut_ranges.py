"""A range that is cut, tried again, or left to the broker at any of its entries has the same rows in every column."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from eos.by_name.data_source import PulsarDataSource
from eos.history.segments import Segments
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EntryId
from eos.source.batch import PulsarReader
from eos.source.offsets import Position
from eos.source.ranges import Range
from eos.source.segment_path import path_of
from eos.source.tasks import RangePartition
from tests.conftest import create_topic
from tests.contract.raw import client
from tests.encryption import KeyPair, key_pair
from tests.soak.topic_shapes import KEY_NAME, ShapedTopic, counted
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.soak

TOPICS = 6

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class World:
    """A broker with its bookie, and the keys of encrypted entries."""

    pulsar: Any
    ours: Client
    http: httpx.Client
    keys: KeyPair
    key_file: Path

    def topic(self, seed: int) -> ShapedTopic:
        """Make a topic, write to it at random, and have the broker close its ledger between two visits."""
        name = create_topic(self.pulsar.admin_url, f"cut-{seed}")
        self.ours.subscription(name, "keeps", initial="earliest").close()
        coordinators = [self.ours.coordinator(0)]
        shaped = ShapedTopic(self.http, self.ours, coordinators, name, random.Random(seed), self.keys)
        shaped.visit(last=False)
        self.http.put(f"{name.replace('://', '/')}/unload").raise_for_status()
        shaped.visit(last=True)
        return shaped

    def delivered(self, topic: str, end: EntryId) -> set[EntryId]:
        """Return the entries that the broker gives to a reader."""
        found: set[EntryId] = set()
        with closing(self.ours.entry_reader(topic, None)) as reader:
            while end not in found:
                found |= {entry.id for entry in reader.read(PATIENCE_S)}
        return found

    def reader(self, topic: str) -> PulsarReader:
        """Return what plans a table of the topic by its bookie, and reads it."""
        with ZooKeeperMetadata(self.pulsar.zookeeper) as zookeeper:
            host, port = zookeeper.address("bk0test")
        given = {
            "service.url": self.pulsar.service_url,
            "admin.url": self.pulsar.admin_url,
            "topic": topic,
            "read.from": "bookies",
            "bookie.addresses": f"bk0test={host}:{port}",
            "decryption_keys": f'{{"{KEY_NAME}": "file:{self.key_file}"}}',
        }
        source = PulsarDataSource(given)
        return cast(PulsarReader, source.reader(source.schema()))


@pytest.fixture
def world(pulsar: Any, tmp_path: Path) -> Iterator[World]:
    keys = key_pair()
    _, key_file = keys.write(tmp_path, KEY_NAME)
    with client(pulsar.service_url) as ours, httpx.Client(base_url=f"{pulsar.admin_url}/admin/v2/") as http:
        yield World(pulsar, ours, http, keys, key_file)


def test_cuts_retries_and_a_change_of_reader_at_each_entry_agree(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    topics, entries = [], 0
    for seed in range(TOPICS):
        shaped = world.topic(seed)
        topics.append(shaped)
        reader = world.reader(shaped.topic)
        (planned,) = reader.partitions()
        assert isinstance(planned, RangePartition)
        assert planned.path is not None
        expected = rows(reader, replace(planned, path=None))
        assert rows(reader, planned) == expected
        segments, delivered = planned.path.segments, world.delivered(shaped.topic, planned.part.end)
        cuts = [one for one in stored(segments) if one < planned.part.end]
        entries += len(cuts)
        first_tries: dict[EntryId, tuple[Rows, Rows]] = {}
        for cut in cuts:
            before, after = parts(planned.part, segments, cut, cut in delivered)
            first_tries[cut] = rows(reader, before), rows(reader, after)
            assert [*first_tries[cut][0], *first_tries[cut][1]] == expected, f"seed {seed}, cut at {cut}"
            handed_over = replace(planned, path=replace(planned.path, end=cut))
            assert rows(reader, handed_over) == expected, f"seed {seed}, left to the broker after {cut}"
        # A task may be tried again when the topic has gone on, and its open transactions have ended.
        shaped.visit(last=True)
        for cut in cuts:
            again = parts(planned.part, segments, cut, cut in delivered)
            for first, second in zip(first_tries[cut], again, strict=True):
                assert rows(reader, second) == first, f"seed {seed}, tried again at {cut}"
    assert not [one for one in caplog.messages if "through its brokers" in one]
    print(f"{len(topics)} topics cut at {entries} entries: {dict(counted(topics))}")
    assert entries > 15 * len(topics)


def stored(segments: Segments) -> list[EntryId]:
    """Return all entries, also markers, and those of aborted transactions."""
    return [EntryId(one.ledger, number) for one in segments.segments for number in range(one.last + 1)]


def parts(part: Range, segments: Segments, cut: EntryId, delivered: bool) -> tuple[RangePartition, RangePartition]:
    """Return both halves of a range that is cut after an entry. Args: whether readers get the entry."""

    def planned(one: Range) -> RangePartition:
        return RangePartition(one, path_of(one, segments, "bookies"))

    before = replace(part, end=cut, end_delivered=delivered)
    return planned(before), planned(replace(part, start=Position(cut, delivered=delivered), first=None))


def rows(reader: PulsarReader, task: RangePartition) -> Rows:
    """Return what a task reads."""
    return [row for batch in reader.read(task) for row in batch.to_pylist()]
