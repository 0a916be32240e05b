"""The rows that reach a topic through the sink, on both of its paths, as the official client reads them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import eos
from eos.steps import Step
from tests.crash.job import prepare
from tests.crash.moments import Witness
from tests.crash.process import account_for, run_to_end
from tests.reading import messages_of, values_of
from tests.waiting import until

EMPTY = "value string"
DRIVER, TASKS = "driver path", "task path"

Open = Callable[..., eos.Sink]


def identity(batch_id: int, query: str = "query", run: str = "run") -> eos.Identity:
    return eos.Identity(query, run, f"offsets of batch {batch_id}")


@pytest.fixture(params=[DRIVER, TASKS])
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_sink(pulsar: Any, spark: SparkSession, path: str, tmp_path: Path) -> Open:
    """Make a sink that has committed an empty batch 0, so that its next batch takes the path of this test."""

    def make(topic: str | None, name: str, first_topic: str | None = None, **options: Any) -> eos.Sink:
        options = {"small_batch_rows": 1_000 if path == DRIVER else 0, "observer": witness(tmp_path)} | options
        sink = eos.sink(pulsar.service_url, topic=topic, name=name, **options)
        with sink.batch(0, identity(0)) as txn:
            columns = "v string, code string" if options.get("value_format") == "json" else EMPTY
            txn.write(spark.createDataFrame([], columns), topic or first_topic)
        return sink

    return make


def witness(folder: Path) -> Witness:
    return Witness(str(folder / "steps"))


def write(sink: eos.Sink, batch_id: int, *writes: tuple[DataFrame, str | None] | DataFrame) -> None:
    with sink.batch(batch_id, identity(batch_id)) as txn:
        for one in writes:
            txn.write(*one) if isinstance(one, tuple) else txn.write(one)


def took(path: str, folder: Path, batch_id: int) -> bool:
    """Tell whether the batch was sent from where this test wants it."""
    pids = witness(folder).pids(Step.FIRST_SEND, batch_id)
    return pids == {os.getpid()} if path == DRIVER else bool(pids - {os.getpid()}) and os.getpid() not in pids


def short(topic: str) -> str:
    return topic.rsplit("/")[-1]


def test_every_part_of_a_message_arrives(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str, tmp_path: Path
) -> None:
    topic = make_topic("parts")
    at = datetime(2013, 1, 1, 12, 30, 0, 250_000, tzinfo=UTC)
    rows = [
        (bytearray(b"\x00\xff bytes"), "a key", bytearray(b"order"), at, {"from": "JFK", "to": "LAX"}),
        (None, "no value", None, None, None),
        (bytearray(b""), None, None, at, {}),
        (bytearray("ü€😀".encode()), "", bytearray(b""), None, {"": "empty name", "ключ": "значение"}),
    ]
    schema = "value binary, key string, ordering_key binary, event_time timestamp, properties map<string,string>"
    write(open_sink(topic, short(topic)), 1, spark.createDataFrame(rows, schema).coalesce(1))
    assert took(path, tmp_path, 1)

    found = messages_of(pulsar.service_url, topic)
    ms = int(at.timestamp() * 1000)
    assert [(m.data(), m.partition_key(), m.ordering_key(), m.event_timestamp(), m.properties()) for m in found] == [
        (b"\x00\xff bytes", "a key", "order", ms, {"from": "JFK", "to": "LAX"}),
        (b"", "no value", "", 0, {}),
        (b"", "", "", ms, {}),
        ("ü€😀".encode(), "", "", 0, {"": "empty name", "ключ": "значение"}),
    ]
    assert [m.has_null_value() for m in found] == [False, True, False, False]


def test_rows_name_their_topics_with_the_connectors_column_names(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str, tmp_path: Path
) -> None:
    here, there, last = make_topic("here", 2), make_topic("there"), make_topic("last")
    numbers = spark.range(300).select(
        F.col("id").cast("string").alias("value"),
        F.concat(F.lit("k"), F.col("id") % 5).alias("__key"),
        F.when(F.col("id") % 3 == 0, here).when(F.col("id") % 3 == 1, there).otherwise(last).alias("__topic"),
        F.timestamp_millis(F.col("id")).alias("__eventTime"),
        F.create_map(F.lit("n"), F.col("id").cast("string")).alias("__messageProperties"),
    )
    sink = open_sink(None, short(last), first_topic=last)
    write(sink, 1, numbers)
    assert took(path, tmp_path, 1)

    for rest, topic in enumerate([here, there, last]):
        found = messages_of(pulsar.service_url, topic)
        assert sorted(int(m.data()) for m in found) == list(range(rest, 300, 3))
        for message in found:
            number = int(message.data())
            assert message.partition_key() == f"k{number % 5}"
            assert message.event_timestamp() == number
            assert message.properties() == {"n": str(number)}
    assert (sink.metrics.rows, sink.metrics.committed, sink.metrics.attempts) == (300, 2, 2)


def test_several_frames_of_data_become_one_transaction(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str
) -> None:
    one, other = make_topic("one", 2), make_topic("other")
    small = spark.range(0, 40).selectExpr("cast(id as string) value")
    big = spark.range(40, 100).selectExpr("cast(id as string) value", "cast(id as string) key")
    sink = open_sink(one, short(one))
    write(sink, 1, small, (big, other), (small.limit(3), other))
    assert sink.metrics.attempts == 2
    assert Counter(values_of(pulsar.service_url, one)) == Counter(map(str, range(40)))
    found = values_of(pulsar.service_url, other)
    assert len(found) == 63
    assert set(map(str, range(40, 100))) <= set(found)


def test_one_bad_write_takes_the_whole_batch_with_it(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str
) -> None:
    one, other = make_topic("one"), make_topic("other", 2)
    good = spark.range(40).selectExpr("cast(id as string) value")
    bad = good.selectExpr("value", "cast(value as int) partition")
    sink = open_sink(one, short(one))
    with pytest.raises(eos.InvalidInput, match=r"asks for partition \d+ of .*other.*partitions 0 to 1"):
        write(sink, 1, good, (bad, other))
    assert values_of(pulsar.service_url, one) == []
    assert values_of(pulsar.service_url, other) == []
    write(sink, 1, good, (bad.where("partition < 2"), other))
    assert Counter(values_of(pulsar.service_url, one)) == Counter(map(str, range(40)))
    assert sorted(values_of(pulsar.service_url, other)) == ["0", "1"]


def test_a_row_becomes_a_json_object(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str, tmp_path: Path
) -> None:
    topic = make_topic("json")
    rows = spark.sql(
        "select 'UA' code, 'gate' key, 'none' topic, 7 partition, 'now' event_time, 'JFK' origin,"
        " 227.5 minutes, named_struct('hour', 5, 'tags', array('a', null)) at,"
        " cast(null as string) gate, date'2013-01-01' `the day`"
    )
    write(open_sink(topic, short(topic), value_format="json", key="code"), 1, rows)
    assert took(path, tmp_path, 1)
    (message,) = messages_of(pulsar.service_url, topic)
    assert message.partition_key() == "UA"
    assert json.loads(message.data()) == {
        "origin": "JFK",
        "key": "gate",
        "topic": "none",
        "partition": 7,
        "event_time": "now",
        "minutes": 227.5,
        "at": {"hour": 5, "tags": ["a", None]},
        "the day": "2013-01-01",
    }


def test_the_partition_column_wins_over_the_key(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str
) -> None:
    topic = make_topic("chosen", 3)
    rows = spark.range(90).selectExpr(
        "cast(id as string) value", "'same' key", "if(id < 60, cast(id % 3 as int), null) partition"
    )
    write(open_sink(topic, short(topic)), 1, rows)
    found = {int(m.data()): m.topic_name() for m in messages_of(pulsar.service_url, topic)}
    assert len(found) == 90
    assert all(found[row].endswith(f"-partition-{row % 3}") for row in range(60))
    assert len({found[row] for row in range(60, 90)}) == 1, "rows without a partition follow their key"


@pytest.mark.parametrize("compression", ["lz4", "zlib", "zstd", "snappy"])
def test_each_compression_is_read_back(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str, compression: str
) -> None:
    topic = make_topic(compression)
    rows = spark.range(500).selectExpr("repeat(cast(id as string), 50) value", "cast(id % 7 as string) key")
    write(open_sink(topic, short(topic), compression=compression), 1, rows)
    assert Counter(values_of(pulsar.service_url, topic)) == Counter(str(row) * 50 for row in range(500))


def test_an_empty_batch_leaves_a_marker(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str
) -> None:
    topic = make_topic("empty", 2)
    sink = open_sink(topic, short(topic))
    optimised_away = spark.range(10).selectExpr("cast(id as string) value").where("false")
    write(sink, 1, optimised_away)
    assert (sink.metrics.committed, sink.metrics.rows) == (2, 0)

    later = eos.sink(pulsar.service_url, topic=topic, name=short(topic))
    with later.batch(1, identity(1, run="a later run")) as txn:
        txn.write(optimised_away)
    assert (later.metrics.skipped, later.metrics.attempts) == (1, 0)
    assert values_of(pulsar.service_url, topic) == []


def test_a_row_over_the_brokers_limit_is_named_and_nothing_is_visible(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str
) -> None:
    topic = make_topic("large")
    rows = spark.range(4).coalesce(1).selectExpr("if(id = 2, repeat('x', 6000000), cast(id as string)) value")
    sink = open_sink(topic, short(topic))
    with pytest.raises(eos.InvalidInput, match=r"(?i)row 2.*\b60000\d\d.*\b52\d{5}"):
        write(sink, 1, rows)
    assert sink.metrics.attempts == 2, "a second try can't mend it"
    assert values_of(pulsar.service_url, topic) == []
    write(sink, 1, rows.where("length(value) < 10"))
    assert sorted(values_of(pulsar.service_url, topic)) == ["0", "1", "3"]


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_big_batch_after_a_small_one_is_exact(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, partitions: int
) -> None:
    topic = make_topic("bigger", 2)
    sink = eos.sink(pulsar.service_url, topic=topic, name=short(topic), small_batch_rows=10, observer=witness(tmp_path))
    sizes = [(0, 3), (3, 10), (13, 5_000), (5_013, 11), (5_024, 2)]
    for batch_id, (start, count) in enumerate(sizes):
        rows = spark.range(start, start + count, numPartitions=partitions).selectExpr("cast(id as string) value")
        write(sink, batch_id, rows)
    by_driver = [witness(tmp_path).pids(Step.FIRST_SEND, batch_id) == {os.getpid()} for batch_id in range(4)]
    assert by_driver == [False, True, False, False], "nothing is known of the batch before, small, big, small after big"
    assert Counter(values_of(pulsar.service_url, topic)) == Counter(map(str, range(5_026)))


def test_a_large_row_in_a_small_batch_goes_by_the_tasks(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    topic = make_topic("wide")
    sink = eos.sink(pulsar.service_url, topic=topic, name=short(topic), observer=witness(tmp_path))
    write(sink, 0, spark.createDataFrame([], EMPTY))
    write(sink, 1, spark.range(3).selectExpr("repeat(cast(id as string), if(id = 1, 100000, 1)) value"))
    assert os.getpid() not in witness(tmp_path).pids(Step.FIRST_SEND, 1)
    assert sorted(values_of(pulsar.service_url, topic)) == ["0", "1" * 100_000, "2"]


def test_keyless_rows_of_many_small_batches_use_every_partition(
    spark: SparkSession, pulsar: Any, make_topic: Any, open_sink: Open, path: str
) -> None:
    topic = make_topic("spread", 3)
    sink = open_sink(topic, short(topic))
    for batch_id in range(1, 4):
        write(sink, batch_id, spark.range(2).coalesce(1).selectExpr("cast(id as string) value"))
    found = messages_of(pulsar.service_url, topic)
    assert len(found) == 6
    if path == DRIVER:
        assert len({m.topic_name() for m in found}) == 3


# ---- small frames


LIMIT = 4000


@pytest.mark.parametrize("small_batch_rows", [0, 10_000], ids=["tasks", "driver"])
def test_small_rows_reach_a_topic_that_takes_small_frames(
    spark: SparkSession, pulsar: Any, make_topic: Any, small_batch_rows: int
) -> None:
    topic = make_topic("small", partitions=2)
    url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/maxMessageSize"
    httpx.post(url, json=LIMIT, timeout=30).raise_for_status()
    until(lambda: httpx.get(url, timeout=30).text == str(LIMIT))
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1], small_batch_rows=small_batch_rows)
    rows = spark.range(2000).selectExpr("lpad(cast(id as string), 100, '0') value", "cast(id as string) key")
    for batch_id in range(2):
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets {batch_id}")) as txn:
            txn.write(rows)
    expected = sorted(f"{number:0100d}" for number in range(2000) for _ in range(2))
    assert sorted(values_of(pulsar.service_url, topic)) == expected
    sink.close()


# ---- Unix sockets


FILES, ROWS = 3, 40


def test_each_row_once_by_the_tasks_and_then_by_the_driver(pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    topic = make_topic("unix", partitions=3)
    conf = {"spark.python.unix.domain.socket.enabled": "true"}
    witness = Witness(str(tmp_path / "steps"))
    driver = run_to_end(prepare(pulsar.service_url, topic, tmp_path, FILES, ROWS, conf=conf, witness=witness.path))
    senders = [witness.pids(Step.FIRST_SEND, batch_id) for batch_id in range(FILES)]
    assert [pids == {driver.pid} for pids in senders] == [False, True, True]
    result = account_for(pulsar.service_url, topic, FILES, ROWS)
    assert result.is_exact(), result
