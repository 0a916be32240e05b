"""State in another number of partitions: the query goes on from it as if it had always been so."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from eos.errors import StaleBatch
from eos.spark.capabilities import TABLE, Capability
from statestore import Damaged, InvalidInput, rescale, savepoints, state_difference, verify
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.operators import operator_ids
from statestore.checkpoint.raw_state import raw_rows, read_kept, session_for
from statestore.hadoop.file_systems import Hadoop
from statestore.rewriting import rescaling
from statestore.roll_forward import restore_in_step
from tests.conftest import MakeTopic
from tests.integration.statestore.conftest import BATCHES
from tests.integration.statestore.in_step_job import CountingJob, written
from tests.reading import values_of
from tests.soak.queries import PROVIDERS, QUERIES, rows, run, start
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
            found_rows = raw_rows(session, uri, kept, batch, operator.id, store).collect()
            in_order: dict[tuple[Any, ...], list[Any]] = {}
            for row in found_rows:
                key, value = (one if isinstance(one, str) else bytes(one) for one in (row.key_bytes, row.value_bytes))
                in_order.setdefault((row.column_family_name, key), []).append(value)
            stores[store] = sorted((*key, *values) for key, values in in_order.items())
        found.append(stores)
    return found


@pytest.mark.parametrize(
    ("provider", "query", "partitions"),
    [
        ("changelog1", "transform", 3),
        ("hdfs", "aggregation", 5),
        pytest.param("changelog2", "join", 1, marks=pytest.mark.soak),
        pytest.param("rocksdb", "deduplication", 5, marks=pytest.mark.soak),
    ],
)
def test_the_state_goes_on_as_that_of_a_run_that_never_stopped(
    provider: str, query: str, partitions: int, checkpoints: dict[str, str], spark: SparkSession, bk: str
) -> None:
    original, name, target = checkpoints[provider], f"s{uuid.uuid4().hex[:8]}", f"{bk}/rescaled"
    savepoints.create(name, original, batch_id=1)
    try:
        done = rescale(name, target, partitions, spark=spark)
    finally:
        savepoints.delete(name, original)
    assert (done.state_of, done.batch_id, done.partitions_before, done.partitions) == (1, 2, 2, partitions)
    assert done.rows > 0
    assert contents(spark, target, 2) == contents(spark, original, 1)
    files = HadoopFiles(Hadoop.of(spark), target)
    for operator in operator_ids(files):
        there = [int(name) for name in files.list(f"state/{operator}") if name.isdecimal()]
        assert sorted(there) == list(range(partitions))
    report = verify(target, operators=len(operator_ids(files)))
    assert report.findings == ()
    assert read_kept(files, 2).operators[0].partitions == partitions

    run(spark, provider, query, target, BATCHES + 1, settings=KEEP_ALL)
    assert contents(spark, target, BATCHES) == contents(spark, original, BATCHES - 1), "a batch later, by its number"


def outputs(
    spark: SparkSession, provider: str, query: str, checkpoint: str, batches: int, into: dict[int, Counter[Any]]
) -> None:
    def each(found: Any, batch: int) -> None:
        into[batch] = Counter(tuple(row) for row in found.collect())

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


def sessions(spark: SparkSession) -> tuple[DataFrame, str]:
    """Count the rows of each key in sessions: of batches without a pause of three."""
    keyed = rows(spark).where("value div 20 % 8 < 4").select("timestamp", (F.col("value") % 7).alias("k"))
    counts = keyed.groupBy(F.session_window("timestamp", "3 seconds"), "k").count()
    return counts.select(F.col("session_window.start").cast("long").alias("start"), "k", "count"), "append"


def all_duplicates(spark: SparkSession) -> tuple[DataFrame, str]:
    """Without a watermark: each key comes three times, often in two batches."""
    return rows(spark).select(F.floor(F.col("value") / 3).alias("k")).dropDuplicates(["k"]), "append"


def in_pandas(spark: SparkSession) -> tuple[DataFrame, str]:
    """Count the rows of each key, in Python."""

    def count(key: Any, frames: Any, state: Any) -> Any:
        total = sum(len(frame) for frame in frames) + (state.get[0] if state.exists else 0)
        state.update((total,))
        yield pd.DataFrame({"k": [int(key[0])], "n": [total]})

    keyed = rows(spark).select((F.col("value") % 5).alias("k")).groupBy("k")
    return keyed.applyInPandasWithState(count, "k long, n long", "n long", "update", "NoTimeout"), "update"


EXTRA = {"sessions": sessions, "all duplicates": all_duplicates, "in pandas": in_pandas}


@pytest.fixture(autouse=True)
def queries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, query in EXTRA.items():
        monkeypatch.setitem(QUERIES, name, query)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("provider", "query"),
    [
        *(("changelog2", query) for query in EXTRA),
        ("hdfs", "all duplicates"),
        *(
            (provider, query)
            for provider in PROVIDERS
            for query in ("aggregation", "deduplication", "join", "transform")
            if (provider, query) not in (("hdfs", "join"), ("hdfs", "transform"))
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
        assert (done.state_of, done.batch_id) == (at, at + 1)
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


@pytest.mark.crash
@pytest.mark.needs(TABLE[Capability.REWRITES_STATE])
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
    savepoints.create(f"{job.name}-behind", live)
    hadoop = Hadoop.of(spark)
    before = {status.uri: status.mtime_ms for status in hadoop.walk(live)}
    up = rescale(live, wide, 3, spark=session)
    assert {status.uri: status.mtime_ms for status in hadoop.walk(live)} == before, "the original is as it was"
    savepoints.create(f"{job.name}-wide", wide)
    done = restore_in_step(f"{job.name}-wide", f"{bk}/in-step", job, job.output, spark=session)
    assert (done.batch_id, done.replayed) == (up.batch_id, 0), "as the output is: the batch in its place has no output"
    savepoints.delete(f"{job.name}-wide", wide)
    run_once(wide, up.batch_id + 2)
    down = rescale(wide, narrow, 1, spark=session)
    run_once(narrow, down.batch_id + 2)

    values = sorted(values_of(pulsar.service_url, job.topic))
    batches = len(values) // 3
    assert values == written(range(batches))
    assert batches >= up.state_of + 1 + (down.state_of - up.batch_id) + 2

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
    savepoints.create(job.name, rescaled)
    job(session, live, {"once": True}).awaitTermination()
    job.close()
    with pytest.raises(InvalidInput, match=r"was rescaled after batch 0, and the output is at batch 1. .* rescale its"):
        restore_in_step(job.name, f"{bk}/in-step", job, job.output, spark=session)
    savepoints.delete(job.name, rescaled)
    with pytest.raises(Exception, match=r"holds batch 1, and this checkpoint's state, which was rescaled"):
        job(session, rescaled, {"once": True}).awaitTermination()
    job.close()
    assert sorted(values_of(pulsar.service_url, job.topic)) == written(range(2))


KEYS = (
    "concat('größer ', value % 7) as text",
    "cast(value % 3 as int) as number",
    "cast(value % 2 as tinyint) as small",
    "if(value % 5 = 0, null, value) % 5 - 3 as long",
    "value % 2 = 0 as flag",
    "date_add(date'1969-12-30', cast(value % 4 as int)) as day",
    "cast(value % 3 as decimal(10, 2)) - 1 as short_decimal",
    "cast(value % 3 as decimal(30, 2)) - 1 as long_decimal",
    "cast(concat('x', value % 3) as binary) as bytes",
    "struct(value % 2 as a, if(value % 3 = 0, null, 'b') as b) as inner",
)


def test_keys_of_every_type_are_placed_as_spark_places_them(spark: SparkSession, tmp_path: Path) -> None:
    """By our own hash, for the provider that Spark can't rewrite; what it says is compared with Spark's."""
    session = spark.newSession()
    for name, value in PROVIDERS["hdfs"].items():
        session.conf.set(name, value)
    keys = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load().selectExpr(*KEYS)
    counts = keys.groupBy(*keys.columns).count().writeStream.outputMode("update").format("noop")
    never, target = (tmp_path / "never").as_uri(), (tmp_path / "rescaled").as_uri()
    counts.option("checkpointLocation", never).trigger(once=True).start().awaitTermination()
    done = rescale(never, target, 5, spark=session)
    assert done.rows == 50
    for checkpoint in (never, target):
        counts.option("checkpointLocation", checkpoint).trigger(once=True).start().awaitTermination()
    assert state_difference(never, target, spark=session).collect() == []
    assert verify(target, operators=1).findings == ()


def test_what_cannot_be_rescaled_is_refused_by_name(
    spark: SparkSession, checkpoints: dict[str, str], tmp_path: Path
) -> None:
    target = (tmp_path / "target").as_uri()
    whole = (tmp_path / "whole").as_uri()
    count = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().groupBy().count()
    writer = count.writeStream.outputMode("update").format("noop").option("checkpointLocation", whole)
    writer.trigger(once=True).start().awaitTermination()
    with pytest.raises(InvalidInput, match="one group for all rows, which Spark keeps in partition 0"):
        rescale(whole, target, 5, spark=spark)  # of two partitions the hash of nothing, 42, names the right one
    report = verify(whole, operators=1)
    assert report.findings == (), "only the first partition is ever written"
    rocks = checkpoints["rocksdb"]
    hadoop = Hadoop.of(spark)
    with pytest.raises(InvalidInput, match="partitions is 0"):
        rescale(rocks, target, 0, spark=spark)
    with pytest.raises(
        InvalidInput, match=r"is the name of a savepoint, .* must be a bk:// address there.*with a / in it"
    ):
        rescale("checkpoint", target, 3, spark=spark)
    with pytest.raises(InvalidInput, match="Restore the savepoint on it"):
        rescale("pulsar://localhost:6650/public/default/savepoints", target, 3, spark=spark)
    with pytest.raises(InvalidInput, match=r"There is a checkpoint at .* already"):
        rescale(rocks, rocks, 3, spark=spark)
    with pytest.raises(InvalidInput, match="is inside the checkpoint"):
        rescale(rocks, f"{rocks}/rescaled", 3, spark=spark)
    query = start(spark, "rocksdb", "deduplication", (tmp_path / "runs").as_uri())
    try:
        until_batch(query, 1)
        with pytest.raises(InvalidInput, match=r"A query of this application runs on .*stop_with_savepoint"):
            rescale((tmp_path / "runs").as_uri(), target, 3, spark=spark)
    finally:
        query.stop()
    assert hadoop.status(target) is None


def test_what_is_not_what_was_there_is_not_kept(
    spark: SparkSession, checkpoints: dict[str, str], bk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it was compared Spark starts no query on it; a rescaling that dies leaves just that."""
    name, target, hadoop = f"s{uuid.uuid4().hex[:8]}", f"{bk}/rescaled", Hadoop.of(spark)
    savepoints.create(name, checkpoints["rocksdb"])

    def differs(*_: object) -> None:
        assert hadoop.read(f"{target}/metadata") == b""
        raise Damaged("not the same")

    monkeypatch.setattr(rescaling, "_compare", differs)
    try:
        with pytest.raises(Damaged, match="not the same"):
            rescale(name, target, 3, spark=spark)
    finally:
        savepoints.delete(name, checkpoints["rocksdb"])
    assert hadoop.status(target) is None
