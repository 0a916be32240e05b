"""Reads of shadow topics, from which brokers deliver what is not committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from eos.errors import Refused, RefusedForGood, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from eos.source import tasks
from eos.source.offsets import BEGINNING
from eos.source.optional_questions import REST_S
from eos.source.options import SourceOptions, parse_options
from eos.source.ranges import Range
from eos.source.shadow_topics import ShadowTopics
from eos.source.tasks import RangePartition, read_partition

BASE = "persistent://public/default"
SOURCE = f"{BASE}/source"
SCHEMA = StructType([StructField("value", BinaryType())])


def options(**more: str) -> SourceOptions:
    given = {"service.url": "pulsar://localhost:1", "topic": "t"}
    return parse_options(given | {name.replace("_", "."): value for name, value in more.items()}, "batch")


def ranges(*names: str) -> list[Range]:
    return [Range(f"{BASE}/{name}", BEGINNING, EntryId(3, 9)) for name in names]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that the admin API was asked about: "shadow" has a source, "denied" is not told, "gone" is deleted."""
    found: list[str] = []

    def properties(admin: Admin, topic: str) -> dict[str, str]:
        found.append(topic.rpartition("/")[2])
        if found[-1] == "denied":
            raise Refused(f"GET {topic}", "403", "no permission")
        if found[-1] == "gone":
            raise TopicMissing(topic)
        return {"PULSAR.SHADOW_SOURCE": SOURCE} if found[-1] == "shadow" else {"owner": "us"}

    monkeypatch.setattr(Admin, "properties", properties)
    return found


def test_each_topic_is_asked_about_until_it_is_told_and_a_partition_by_its_topic(
    asked: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Not to be told now does not mean that it is a plain topic."""
    now = [0.0]
    shadows = ShadowTopics(options(admin_url="http://localhost:2"), lambda: now[0])
    parts = ranges("plain", "shadow-partition-0", "shadow-partition-1", "denied")
    for again in ([], [], ["denied"]):
        assert shadows.sources(parts) == [None, SOURCE, SOURCE, None]
        assert sorted(asked) == sorted(["denied", "plain", "shadow", *again])
        now[0] += REST_S / 2
    (warning,) = caplog.messages
    assert warning.startswith(f"Whether {BASE}/denied is a shadow topic is not known: ")


def test_a_deleted_topic_is_asked_about_once_it_is_read_again(
    asked: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It may come again, as a shadow topic."""
    shadows = ShadowTopics(options(admin_url="http://localhost:2"))
    for times in (1, 2):
        assert shadows.sources(ranges("gone")) == [None]
        assert asked == ["gone"] * times
    assert not caplog.messages


def test_without_an_admin_api_nobody_is_asked(asked: list[str], caplog: pytest.LogCaptureFixture) -> None:
    assert ShadowTopics(options()).sources(ranges("shadow")) == [None]
    assert (asked, caplog.record_tuples) == ([], [])


def entry(number: int, value: bytes, *, transactional: bool) -> Entry:
    metadata = MessageMetadata(producer_name="p", sequence_id=number, publish_time=1)
    if transactional:
        metadata.txnid_most_bits = metadata.txnid_least_bits = 0
    return Entry(EntryId(3, number), metadata, value, len(value))


@pytest.mark.parametrize(
    ("source", "transactional", "outcome"),
    [
        (SOURCE, True, f"is a shadow topic of {SOURCE}.*Entry 3:1 is of a transaction.*Read {SOURCE}"),
        (SOURCE, False, [b"plain", b"second"]),
        (None, True, [b"plain", b"second"]),
    ],
)
def test_a_message_of_a_transaction_is_refused_on_a_shadow_topic_only(
    source: str | None, transactional: bool, outcome: str | list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def groups(*_: Any) -> Iterator[list[Entry]]:
        yield [entry(0, b"plain", transactional=False)]
        yield [entry(1, b"second", transactional=transactional)]

    monkeypatch.setattr(tasks, "read_range", groups)
    (part,) = ranges("t")
    batches = read_partition(RangePartition(part, shadow_of=source), options(), SCHEMA)
    if isinstance(outcome, str):
        with pytest.raises(RefusedForGood, match=outcome):
            list(batches)
    else:
        assert pa.Table.from_batches(batches)["value"].to_pylist() == outcome
