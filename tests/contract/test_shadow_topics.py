"""Shadow topics: what a broker delivers from them of transactions, and that the source refuses it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from eos.config import Cluster
from eos.errors import RefusedForGood
from eos.inspect.rows import TopicRows
from eos.pulsar.net.client import Client
from eos.source.batch import PulsarReader
from eos.source.options import parse_options
from eos.source.stream import PulsarStreamReader
from eos.source.tasks import RangePartition
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.integration.source.queries import fail
from tests.waiting import until

SCHEMA = StructType([StructField("value", BinaryType())])


def shadow_of(pulsar: Running, source: str, partitions: int) -> str:
    """Make a shadow topic, as `pulsar-admin topics create-shadow-topic` does."""
    shadow = f"{source}-shadow"
    path, body, kind = shadow.replace("://", "/"), {"PULSAR.SHADOW_SOURCE": source}, "application/json"
    if partitions:
        path, kind = f"{path}/partitions", "application/vnd.partitioned-topic-metadata+json"
        made: dict[str, Any] = {"partitions": partitions, "properties": body}
    else:
        made = body
    where, headers = f"{pulsar.admin_url}/admin/v2/{path}", {"Content-Type": kind}
    httpx.put(where, content=json.dumps(made), headers=headers, timeout=30).raise_for_status()
    return shadow


def unload(pulsar: Running, topic: str) -> None:
    """Have the broker end the ledger that it writes to: a shadow topic that is not sent to shows closed ones whole."""
    httpx.put(f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/unload", timeout=30).raise_for_status()


def given(pulsar: Running, topic: str, **more: str) -> dict[str, str]:
    return {"service.url": pulsar.service_url, "admin.url": pulsar.admin_url, "topic": topic, **more}


def rows(reader: Any, parts: Any) -> list[bytes]:
    assert all(isinstance(part, RangePartition) for part in parts)
    return [value.as_py() for part in parts for batch in reader.read(part) for value in batch["value"]]


def table(pulsar: Running, topic: str) -> list[bytes]:
    reader = PulsarReader(parse_options(given(pulsar, topic), "batch"), SCHEMA)
    return rows(reader, reader.partitions())


def stream(pulsar: Running, topic: str) -> list[bytes]:
    options = given(pulsar, topic, subscription="job", startingOffsets="earliest")
    reader = PulsarStreamReader(parse_options(options, "stream"), SCHEMA)
    try:
        begin = reader.initialOffset()
        return rows(reader, reader.partitions(begin, reader.latestOffset(begin, reader.getDefaultReadLimit())))
    finally:
        reader.stop()


@pytest.mark.parametrize("partitions", [0, 1])
def test_a_shadow_topic_gives_plain_messages_and_what_is_of_transactions_is_refused(
    pulsar: Running, ours: Client, make_topic: MakeTopic, partitions: int
) -> None:
    source = make_topic("source", partitions)
    (physical,) = ours.physical_topics(source)
    with ours.producer(physical) as producer:
        producer.send_record(b"plain", None)
    unload(pulsar, physical)
    shadow = shadow_of(pulsar, source, partitions)
    (delivers,) = ours.physical_topics(shadow)
    assert table(pulsar, shadow) == stream(pulsar, shadow) == [b"plain"]

    committed, aborted = transaction(ours, physical), transaction(ours, physical)
    with ours.producer(physical) as producer:
        producer.send_record(b"aborted", aborted)
        producer.send_record(b"committed", committed)
    end(ours, aborted, commit=False)
    end(ours, committed, commit=True)
    unload(pulsar, physical)
    unload(pulsar, delivers)

    def delivered() -> list[bytes | None]:
        return [row.value for row in TopicRows(Cluster(pulsar.service_url), shadow, "earliest", fail).stored()]

    until(lambda: delivered() == [b"plain", b"aborted", b"committed"], lambda: f"the broker delivers {delivered()}")
    assert table(pulsar, source) == [b"plain", b"committed"]
    for read in (table, stream):
        with pytest.raises(RefusedForGood, match=f"is a shadow topic of {source}"):
            read(pulsar, shadow)
