"""State in another number of partitions: the query goes on from it as if it had always been so."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eos.errors import StaleBatch
from statestore import InvalidInput, rescale, savepoints, verify
from statestore.checkpoint.hadoop_files import HadoopFiles
from statestore.checkpoint.operators import operator_ids
from statestore.checkpoint.raw_state import raw_rows, read_kept, session_for
from statestore.hadoop.file_systems import Hadoop
from tests.conftest import MakeTopic
from tests.integration.statestore.checkpoints import BATCHES
from tests.integration.statestore.in_step_job import CountingJob, written
from tests.reading import values_of
from tests.soak.queries import PROVIDERS, run
from tests.waiting import until_batch

KEEP_ALL = {"spark.sql.streaming.minBatchesToRetain": "10000"}


def contents(spark: SparkSession, uri: str, batch: int) -> list[dict[str, list[tuple[Any, ...]]]]:
    """All rows of the state by operator and store; the values of a list in their order."""
    kept = read_kept(HadoopFiles(Hadoop.of(spark), uri), batch)
    session = session_for(spark, kept)
    found: list[dict[str, list[tuple[Any, ...]]]] = []
    for operator in kept.operators:
        stores = {}
        for store in operator.stores:
            rows = raw_rows(session, uri, batch, operator.id, store).collect()
            in_order: dict[tuple[Any, ...], list[bytes]] = {}
            for row in rows:
                in_order.setdefault((row.column_family_name, bytes(row.key_bytes)), []).append(bytes(row.value_bytes))
            stores[store] = sorted((*key, *values) for key, values in in_order.items())
        found.append(stores)
    return found


@pytest.mark.parametrize(
    ("provider", "query", "partitions"),
    [
        ("changelog1", "transform", 3),
        pytest.param("changelog2", "join", 1, marks=pytest.mark.soak),
        pytest.param("rocksdb", "deduplication", 5, marks=pytest.mark.soak),
    ],
)
def test_the_state_goes_on_as_that_of_a_run_that_never_stopped(
    provider: str, query: str, partitions: int, checkpoints: dict[str, str], spark: SparkSession, bk: str
) -> None:
    original, name, target = checkpoints[provider], f"s{uuid.uuid4().hex[:8]}", f"{bk}/rescaled"
    savepoints.create(name, original, batch=1)
    try:
        done = rescale(name, target, partitions, spark=spark)
    finally:
        savepoints.delete(name, original)
    assert (done.state_of, done.batch, done.partitions_before, done.partitions) == (1, 2, 2, partitions)
    assert done.rows > 0
    assert contents(spark, target, 2) == contents(spark, original, 1)
    files = HadoopFiles(Hadoop.of(spark), target)
    for operator in operator_ids(files):
        there = [int(name) for name in files.list(f"state/{operator}") if name.isdecimal()]
        assert sorted(there) == list(range(partitions))
    report = verify(target)
    assert report.findings == ()
    assert read_kept(files, 2).operators[0].partitions == partitions

    run(spark, provider, query, target, BATCHES + 1, settings=KEEP_ALL)
    assert contents(spark, target, BATCHES) == contents(spark, original, BATCHES - 1), "a batch later, by its number"


def outputs(
    spark: SparkSession, provider: str, query: str, checkpoint: str, batches: int, into: dict[int, Counter[Any]]
) -> None:
    def each(rows: Any, batch: int) -> None:
        into[batch] = Counter(tuple(row) for row in rows.collect())

    run(spark, provider, query, checkpoint, batches, each, settings=KEEP_ALL)


def clean_end(folder: Path) -> int:
    """Take away the plan of a batch that was begun, as if the query had ended before it; return the last batch."""
    planned, done = (
        max(int(file.name) for file in (folder / log).iterdir() if file.name.isdecimal())
        for log in ("offsets", "commits")
    )
    if planned > done:
        (folder / "offsets" / str(planned)).unlink()
        (folder / "offsets" / f".{planned}.crc").unlink(missing_ok=True)
    return done


@pytest.mark.parametrize(
    ("provider", "query"),
    [
        ("rocksdb", "aggregation"),
        *(
            pytest.param(provider, query, marks=pytest.mark.soak)
            for provider in PROVIDERS
            for query in ("aggregation", "deduplication", "join", "transform")
            if provider != "hdfs" and (provider, query) != ("rocksdb", "aggregation")
        ),
    ],
)
def test_the_output_is_that_of_a_run_that_never_stopped(
    provider: str, query: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Down, and then up, in mid-life; a batch late in number after each time."""
    never, first, second, third = (tmp_path / name for name in ("never", "first", "second", "third"))
    expected: dict[int, Counter[Any]] = {}
    outputs(spark, provider, query, never.as_uri(), 8, expected)
    found: dict[int, Counter[Any]] = {}
    outputs(spark, provider, query, first.as_uri(), 2, found)
    at = clean_end(first)
    found = {batch: rows for batch, rows in found.items() if batch <= at}
    for source, target, partitions in ((first, second, 1), (second, third, 3)):
        done = rescale(source.as_uri(), target.as_uri(), partitions, spark=spark)
        assert (done.state_of, done.batch) == (at, at + 1)
        outputs(spark, provider, query, target.as_uri(), at + 4, found)
        at = clean_end(target)
        assert at + 1 not in found or found.pop(at + 1) is not None
    last = max(expected)
    in_order = [found[batch] for batch in sorted(found)][: last + 1]
    assert in_order == [expected[batch] for batch in range(len(in_order))]
    assert len(in_order) >= 6


def rocksdb(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for name, value in PROVIDERS["changelog1"].items():
        session.conf.set(name, value)
    return session


def test_the_sink_goes_on_exactly_once(spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic) -> None:
    session = rocksdb(spark)
    job = CountingJob(pulsar.service_url, make_topic("counts"), f"s{uuid.uuid4().hex[:10]}")
    live, wide, narrow = f"{bk}/live", f"{bk}/wide", f"{bk}/narrow"

    def run_once(checkpoint: str, batch: int) -> None:
        """Run to a batch, and end in good order."""
        query = job(session, checkpoint, {"processingTime": "0 seconds"})
        until_batch(query, batch)
        query.stop()
        job(session, checkpoint, {"once": True}).awaitTermination()
        job.close()

    run_once(live, 2)
    files = HadoopFiles(Hadoop.of(spark), live)
    savepoints.create(f"{job.name}-behind", live)
    hadoop = Hadoop.of(spark)
    before = {status.uri: status.mtime_ms for status in hadoop.walk(live)}
    up = rescale(live, wide, 3, spark=session)
    assert {status.uri: status.mtime_ms for status in hadoop.walk(live)} == before, "the original is as it was"
    run_once(wide, up.batch + 2)
    down = rescale(wide, narrow, 1, spark=session)
    run_once(narrow, down.batch + 2)
    del files

    values = sorted(values_of(pulsar.service_url, job.topic))
    batches = len(values) // 3
    assert values == written(range(batches))
    assert batches >= up.state_of + 1 + (down.state_of - up.batch) + 2

    # State of a savepoint that the output has gone past is rescaled, but its sink writes nothing of it.
    stale = f"{bk}/stale"
    rescale(f"{job.name}-behind", stale, 3, spark=session)
    with pytest.raises(Exception, match=StaleBatch.__name__):
        job(session, stale, {"once": True}).awaitTermination()
    job.close()
    assert sorted(values_of(pulsar.service_url, job.topic)) == values
    savepoints.delete(f"{job.name}-behind", live)


def test_output_of_just_the_batch_that_was_rewritten_is_not_doubled(
    spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic
) -> None:
    """The one case that batch ids don't show: n + 1 is in the output, and the rescaled query goes on with n + 2."""
    session = rocksdb(spark)
    job = CountingJob(pulsar.service_url, make_topic("counts"), f"s{uuid.uuid4().hex[:10]}")
    live, rescaled = f"{bk}/live", f"{bk}/rescaled"
    job(session, live, {"once": True}).awaitTermination()
    job.close()
    rescale(live, rescaled, 3, spark=session)
    job(session, live, {"once": True}).awaitTermination()
    job.close()
    with pytest.raises(Exception, match=r"holds batch 1, and this checkpoint's state, which was rescaled"):
        job(session, rescaled, {"once": True}).awaitTermination()
    job.close()
    assert sorted(values_of(pulsar.service_url, job.topic)) == written(range(2))


def test_what_cannot_be_rescaled_is_refused_by_name(
    spark: SparkSession, checkpoints: dict[str, str], tmp_path: Path
) -> None:
    target = (tmp_path / "target").as_uri()
    name = f"s{uuid.uuid4().hex[:8]}"
    savepoints.create(name, checkpoints["hdfs"])
    try:
        savepoints.restore(name, f"{checkpoints['hdfs']}-{name}")
        with pytest.raises(InvalidInput, match="HDFSBackedStateStoreProvider, which Spark can't rewrite"):
            rescale(f"{checkpoints['hdfs']}-{name}", target, 3, spark=spark)
    finally:
        savepoints.delete(name, checkpoints["hdfs"])
    rocks = f"{checkpoints['rocksdb']}"
    hadoop = Hadoop.of(spark)
    with pytest.raises(InvalidInput, match="0 is no number of partitions"):
        rescale(rocks, target, 0, spark=spark)
    with pytest.raises(InvalidInput, match="restore the savepoint on it"):
        rescale("pulsar://localhost:6650/public/default/savepoints", target, 3, spark=spark)
    with pytest.raises(InvalidInput, match="There is something at"):
        rescale(rocks, rocks, 3, spark=spark)
    assert hadoop.status(target) is None
