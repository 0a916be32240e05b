"""Single entries that no bookie has, within ledgers that are there, and that the broker passes over."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import httpx
import pytest

from eos.bookkeeper.wire.bookkeeper_pb2 import LedgerMetadataFormat
from eos.bookkeeper.wire.metadata import znode
from eos.inspect.rows import TopicRows
from eos.local import LocalCluster
from eos.pulsar.net.admin import Admin
from eos.pulsar.wire.decoding import decode
from eos.pulsar.wire.encryption import as_it_is
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.options import parse_options
from eos.source.range_reader import read_range
from eos.source.segment_path import SegmentPlan, read_stored
from tests.clients import end, transaction
from tests.conftest import START_S
from tests.contract.raw import client
from tests.integration.source.lossy_topic import LossyTopic
from tests.integration.source.queries import Query, read

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

TRANSACTIONS = 300
ROWS = [[f"{ledger}-{entry}" for entry in range(count)] for ledger, count in enumerate((4, 250, 4))]
ALL = [row for rows in ROWS for row in rows]
_HEADER = b"BookieMetadataFormatVersion\t3\n"

Segments = list[tuple[int, tuple[int, int]]]
"""From which entry on a ledger's entries are looked for where: the first bookie, the second (0, 1), or another (2)."""

STRIPED, SWAPPED = (0, 1), (1, 0)
LOST = {
    "one entry": [(0, STRIPED), (150, SWAPPED), (151, STRIPED)],
    "some entries": [(0, STRIPED), (120, SWAPPED), (180, STRIPED)],
    "the first entries": [(0, SWAPPED), (20, STRIPED)],
    "the last entries": [(0, STRIPED), (230, SWAPPED)],
    "every second of the last entries": [(0, STRIPED), (150, (0, 2))],
}


WINDOW = {"starting": 130, "ending": 150}
"""Entries of it that are lost among "some entries"."""


@pytest.fixture(scope="module")
def striped() -> Iterator[LocalCluster]:
    """A cluster that writes each entry to one bookie of two, and passes over what it cannot find."""
    with LocalCluster(settings={"autoSkipNonRecoverableData": True}, start_timeout_s=START_S) as cluster:
        policy = {"bookkeeperEnsemble": 2, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1}
        where = f"{cluster.admin_url}/admin/v2/namespaces/public/default/persistence"
        body = policy | {"managedLedgerMaxMarkDeleteRate": 0}
        httpx.post(where, json=body, timeout=60, follow_redirects=True).raise_for_status()
        yield cluster


def lose(topic: LossyTopic, segments: Segments) -> None:
    """Have entries of the middle ledger be looked for where they are not, as after the loss of a bookie's disk."""
    ledger = topic.ledgers()[1].id
    with topic.metadata() as zookeeper:
        stored, _ = zookeeper.get(znode(ledger))
        found = LedgerMetadataFormat()
        size, begin = _varint(stored, len(_HEADER))
        found.ParseFromString(stored[begin : begin + size])
        has = list(found.segment[0].ensembleMember)
        names = zookeeper.get_children("/ledgers/available")
        bookies = [*has, next(name for name in names if ":" in name and name not in has)]
        del found.segment[:]
        for first, (even, odd) in segments:
            found.segment.add(firstEntryId=first, ensembleMember=[bookies[even], bookies[odd]])
        data = found.SerializeToString()
        zookeeper.set(znode(ledger), _HEADER + _as_varint(len(data)) + data)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def _as_varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _as_varint(value >> 7)


@pytest.fixture
def topic(striped: LocalCluster) -> Iterator[LossyTopic]:
    with client(striped.service_url) as ours:
        made = LossyTopic(striped, ours, ROWS)
        yield made
        made.brokers.close()


LOSS = "none of the entries .* came, and .* (can no longer be read|is stored and is a message)"


@pytest.mark.parametrize("segments", LOST.values(), ids=LOST.keys())
def test_lost_entries_of_a_ledger_are_a_loss_of_tables_streams_and_looks(topic: LossyTopic, segments: Segments) -> None:
    stream = topic.options | {"startingOffsets": "earliest", "subscription": "job", "failOnDataLoss": "false"}
    query = Query(parse_options(stream, "stream"))
    first = query.begins()
    lose(topic, segments)
    for ranges in topic.ranges, topic.planned():
        told: list[str] = []
        rows = read(topic.brokers, ranges, told.append)
        assert len(rows) < len(ALL)
        assert [one for one in told if re.search(LOSS, one)], (len(rows), told)
    assert len(query.behind(first)) < len(ALL)
    assert [one for one in query.told if re.search(LOSS, one)]
    query.brokers.close()
    told = []
    with Admin(topic.options["admin.url"]) as admin:
        asked = admin.entry_kind, admin.may_pass_over
        looked = TopicRows(topic.ours.cluster, topic.topic, "earliest", told.append, as_it_is, *asked)
        assert len(list(looked.stored())) < len(ALL)
    assert [one for one in told if re.search(LOSS, one)]


@pytest.mark.parametrize("segments", LOST.values(), ids=LOST.keys())
def test_without_an_admin_api_lost_entries_between_plain_messages_are_warned_of(
    topic: LossyTopic, segments: Segments, caplog: pytest.LogCaptureFixture
) -> None:
    lose(topic, segments)
    named = {name: value for name, value in topic.options.items() if name != "admin.url"}
    brokers = PulsarBrokers(parse_options(named, "batch"))
    assert len(read(brokers, topic.planned())) < len(ALL)
    brokers.close()
    assert len([one for one in caplog.messages if "belong to no transaction" in one]) == 1


def test_a_window_that_holds_lost_entries_alone_is_a_loss(topic: LossyTopic) -> None:
    (part,) = topic.planned()
    ledger = topic.ledgers()[1].id
    lose(topic, LOST["some entries"])
    bounds = {f"{side}Offsets": json.dumps({topic.topic: f"{ledger}:{entry}"}) for side, entry in WINDOW.items()}
    options = parse_options(topic.options | bounds, "batch")
    (window,) = batch_ranges(topic.brokers, options.start, options.end)
    assert window.first is not None
    assert part.start.entry < window.end < window.first
    told: list[str] = []
    assert read(topic.brokers, [window], told.append) == []
    assert [one for one in told if re.search(LOSS, one)]


def test_lost_entries_are_a_loss_where_the_others_are_read_from_bookies(
    topic: LossyTopic, caplog: pytest.LogCaptureFixture
) -> None:
    lose(topic, LOST["one entry"])
    options = parse_options(topic.options | {"read.from": "bookies"}, "batch")
    told: list[str] = []
    values: list[bytes] = []
    (part,) = topic.planned()
    path = SegmentPlan(options).path(part)
    assert path is not None
    stored = read_stored(part, path, options)
    kind_of, may = topic.brokers.entry_kind, topic.brokers.may_pass_over
    for entries in read_range(part, topic.brokers.open, told.append, stored=stored, kind_of=kind_of, may_pass_over=may):
        values += decode(entries, ["value"]).column("value").to_pylist()
    assert ":150 is lost. Each bookie of its write set was asked" in caplog.text
    assert len(values) < len(ALL)
    assert [one for one in told if re.search(LOSS, one)]


def test_markers_and_aborted_messages_are_no_loss_where_the_broker_passes_over_lost_entries(topic: LossyTopic) -> None:
    with client(topic.options["service.url"]) as ours, ours.producer(topic.topic) as producer:
        for number in range(TRANSACTIONS):
            txn = transaction(ours, topic.topic)
            producer.send_record(f"{number}".encode(), txn)
            end(ours, txn, commit=number % 3 != 0)
        producer.send_record(b"last", None)
    began = time.monotonic()
    rows = read(topic.brokers, topic.planned())
    print(f"{TRANSACTIONS} transactions: {time.monotonic() - began:.2f} s, all asked for")
    assert rows == [*ALL, *(f"{number}" for number in range(TRANSACTIONS) if number % 3), "last"]
