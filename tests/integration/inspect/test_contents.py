"""Topics and their rows, looked at without Spark and as views in it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice
from typing import Any

import httpx
import pulsar as official
import pytest
from pulsar.schema import BytesSchema, StringSchema
from pyspark.sql import SparkSession

import eos
from eos.config import Cluster
from eos.errors import InvalidInput, TopicMissing
from eos.inspect.rows import TopicRow, TopicRows
from eos.inspect.tables import TopicTable, tables
from eos.pulsar.net.client import Client
from tests.clients import official_client
from tests.conftest import MakeTopic
from tests.planner import again_while_late
from tests.waiting import until


def rows(pulsar: Any, topic: str, start: str = "earliest") -> TopicRows:
    return TopicRows(Cluster(pulsar.service_url), topic, start, lose=pytest.fail)


def values(found: Iterator[TopicRow]) -> list[str]:
    return [(row.value or b"null").decode() for row in found]


@contextmanager
def sending(pulsar: Any, topic: str, schema: Any = None) -> Iterator[official.Producer]:
    with official_client(pulsar.service_url) as client:
        yield client.create_producer(topic, schema=schema or BytesSchema(), batching_enabled=False)


def test_what_is_committed_is_shown_with_all_that_belongs_to_it(
    pulsar: Any, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("rows", 2)
    with sending(pulsar, f"{topic}-partition-1") as producer:
        producer.send(b"one", partition_key="k", properties={"a": "b"}, event_timestamp=7)
        producer.send(b"\xff")
    ending, open_one = (ours.coordinator(0).new_transaction(60_000) for _ in range(2))
    for txn, partition in ((ending, 0), (open_one, 1)):
        name = f"{topic}-partition-{partition}"
        ours.coordinator(0).add_partitions(txn, [name])
        with ours.producer(name) as of_txn:
            of_txn.send_record(b"aborted" if txn == ending else b"open", txn)
    ours.coordinator(0).end(ending, False)
    one, two = rows(pulsar, topic).stored()
    assert (one.partition, one.key, one.value, one.event_time_ms, one.properties) == (1, b"k", b"one", 7, {"a": "b"})
    assert abs(one.publish_time_ms / 1000 - time.time()) < 600
    assert (two.key, two.value, two.event_time_ms, two.message_id.entry) == (None, b"\xff", None, 1)
    ours.coordinator(0).end(open_one, True)
    until(lambda: values(row for row in rows(pulsar, topic).stored() if row.value != b"\xff") == ["one", "open"])


def test_reading_begins_where_it_is_told_to(pulsar: Any, make_topic: MakeTopic) -> None:
    topic = make_topic("begin")
    with sending(pulsar, topic) as producer:
        where = [producer.send(b"%d" % number) for number in range(3)]
        time.sleep(0.05)
        moment = datetime.now(UTC)
        time.sleep(0.05)
        producer.send(b"3")
    assert values(rows(pulsar, topic, f"{where[1].ledger_id()}:{where[1].entry_id()}").stored()) == ["1", "2", "3"]
    assert values(rows(pulsar, topic, moment.isoformat()).stored()) == ["3"]
    assert values(rows(pulsar, topic, str(int(moment.timestamp() * 1000))).stored()) == ["3"]
    assert values(rows(pulsar, topic, "latest").stored()) == []
    with pytest.raises(InvalidInput, match=r"begin-.*-partition-0"):
        next(rows(pulsar, make_topic("begin", 2), "5:3").stored())
    with pytest.raises(InvalidInput, match="'yesterday' is not a place to begin"):
        rows(pulsar, topic, "yesterday")
    with pytest.raises(TopicMissing):
        next(rows(pulsar, f"{topic}-none").stored())


class Follower(threading.Thread):
    """Follows a topic until so many rows have come."""

    def __init__(self, followed: TopicRows, count: int) -> None:
        super().__init__(daemon=True)
        self.found: list[str] = []
        self._rows, self._count = followed, count
        self.start()

    def has(self, rows: int) -> bool:
        return len(self.found) == rows

    def run(self) -> None:
        for row in islice(self._rows.coming(), self._count):
            self.found.append((row.value or b"").decode())


def test_what_comes_is_shown_as_it_comes_on_every_partition(pulsar: Any, make_topic: MakeTopic) -> None:
    topic = make_topic("follow", 2)
    with sending(pulsar, f"{topic}-partition-0") as zero, sending(pulsar, f"{topic}-partition-1") as one:
        zero.send(b"0")
        follower = Follower(rows(pulsar, topic), 3)
        for number, producer in ((1, one), (2, zero)):
            until(partial(follower.has, number))
            producer.send(b"%d" % number)
        follower.join(60)
    assert follower.found == ["0", "1", "2"]


def test_latest_begins_with_what_comes_and_leaves_nothing_out(pulsar: Any, make_topic: MakeTopic) -> None:
    topic = make_topic("latest")
    with sending(pulsar, topic) as producer:
        producer.send(b"0")
        follower = Follower(rows(pulsar, topic, "latest"), 20)
        for number in count(1):
            producer.send(b"%d" % number)
            if not follower.is_alive():
                break
            time.sleep(0.05)
    first = int(follower.found[0])
    assert first > 0
    assert follower.found == [str(number) for number in range(first, first + 20)]


def command(*words: str) -> str:
    """Run `eos` in a process that can't import Spark."""
    run = "import sys; sys.modules['pyspark'] = None; sys.argv[0] = 'eos'; from eos.cli.app import app; app()"
    return subprocess.run([sys.executable, "-c", run, *words], capture_output=True, text=True, check=True).stdout


def test_the_commands_need_no_spark(pulsar: Any, make_topic: MakeTopic) -> None:
    topic = make_topic("peek")
    with sending(pulsar, topic) as producer:
        for number in range(25):
            producer.send(b"[red]%d" % number, partition_key="k")
    where = ("--service-url", pulsar.service_url)
    lines = [json.loads(line) for line in command("peek", topic, "--json", "--limit", "2", *where).splitlines()]
    assert [line["value"] for line in lines] == ["[red]0", "[red]1"]
    shown = command("peek", topic, *where)
    assert ("[red]19" in shown, "[red]20" in shown, "event time" in shown) == (True, False, False)
    followed = command("peek", topic, "--follow", "--limit", "1", *where)
    assert followed.rstrip("\n").split("\t")[2:] == ["k", "[red]0"]
    listed = json.loads(command("topics", "--json", *where))
    assert {"topic": topic, "partitions": 0, "schema": None} in listed


@pytest.fixture
def namespace(pulsar: Any) -> str:
    name = f"public/views-{uuid.uuid4().hex[:8]}"
    httpx.put(f"{pulsar.admin_url}/admin/v2/namespaces/{name}", timeout=30).raise_for_status()
    return name


def test_a_namespace_is_a_set_of_views(spark: SparkSession, pulsar: Any, namespace: str, ours: Client) -> None:
    assert tables(ours, namespace) == []
    assert eos.catalog(spark, pulsar.service_url, namespaces=[namespace]) == []
    for name, partitions in (("plain", 0), ("parted", 3), ("__hidden", 0)):
        path = f"{pulsar.admin_url}/admin/v2/persistent/{namespace}/{name}"
        where = f"{path}/partitions" if partitions else path
        answer = httpx.put(where, json=partitions or None, timeout=30, follow_redirects=True)
        answer.raise_for_status()
    full = f"persistent://{namespace}"
    assert tables(ours, namespace) == [TopicTable(f"{full}/parted", 3, None), TopicTable(f"{full}/plain", 0, None)]
    with sending(pulsar, f"{full}/parted-partition-2") as producer:
        producer.send(b"row", partition_key="k")
    with sending(pulsar, f"{full}/typed", StringSchema()) as producer:
        producer.send("text")
    views = again_while_late(lambda: eos.catalog(spark, pulsar.service_url, namespaces=[namespace]))
    assert views == [f"{namespace}/parted", f"{namespace}/plain", f"{namespace}/typed"]

    def collected(query: str) -> list[tuple[Any, ...]]:
        return again_while_late(lambda: [tuple(row) for row in spark.sql(query).collect()])

    assert collected(f"select cast(value as string), __partition from `{views[0]}`") == [("row", 2)]
    assert collected(f"select cast(value as string), __partition from `{views[1]}`") == []
    assert collected(f"select value from `{views[2]}`") == [("text",)]
    given = {"value_format": "bytes", "service_url": pulsar.service_url}
    assert eos.catalog(spark, pulsar.service_url, namespaces=[namespace], options=given) == views
    assert collected(f"select value from `{views[2]}`") == [(bytearray(b"text"),)]
    for view in views:
        spark.sql(f"drop view `{view}`")
    with pytest.raises(InvalidInput, match="is not a namespace"):
        eos.catalog(spark, pulsar.service_url, namespaces=["public"])
