"""The refusals of the sink before it writes anything, and its advice to the user."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.sql import DataFrame, SparkSession

import eos
from tests.crash.job import Job, prepare, run_here
from tests.crash.process import account_for
from tests.reading import values_of

ROWS = 30


def streaming(pulsar: Any, make_topic: Any, folder: Path, files: int) -> Job:
    return prepare(pulsar.service_url, make_topic("guard", partitions=2), folder, files, ROWS)


def expect_first(job: Job, files: int) -> None:
    """Every row of the first files is there once, and no other."""
    result = account_for(job.service_url, job.topic, files, ROWS)
    assert result.is_exact(), result


# ---- whose batch it is


def test_a_deleted_checkpoint_is_refused(spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path) -> None:
    job = streaming(pulsar, make_topic, tmp_path, 2)
    run_here(spark, job)
    shutil.move(job.checkpoint, tmp_path / "aside")
    with pytest.raises(eos.IdentityMismatch, match=r"the checkpoint was deleted .* or two jobs use one sink name"):
        run_here(spark, job)
    expect_first(job, 2)
    shutil.rmtree(job.checkpoint)
    shutil.move(tmp_path / "aside", job.checkpoint)
    run_here(spark, job)
    expect_first(job, 2)


def test_a_checkpoint_from_an_old_backup_is_refused(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    job = streaming(pulsar, make_topic, tmp_path, 4)
    backups = {}
    for last in range(3):
        run_here(spark, job, last=last)
        backups[last] = shutil.copytree(job.checkpoint, tmp_path / f"backup-{last}")
    newest = shutil.move(job.checkpoint, tmp_path / "newest")

    # It stopped on its way into batch 1, and batch 2 is the newest in the output.
    shutil.copytree(backups[0], job.checkpoint)
    with pytest.raises(eos.StaleBatch, match="the output holds batch 2, and Spark hands over batch 1"):
        run_here(spark, job)
    # The same batch as the newest in the output, planned anew, with a time of its own.
    shutil.rmtree(job.checkpoint)
    shutil.copytree(backups[1], job.checkpoint)
    (job.checkpoint / "offsets" / "2").unlink()
    (job.checkpoint / "offsets" / ".2.crc").unlink()
    with pytest.raises(eos.IdentityMismatch, match="batch 2 is committed, but with other offsets"):
        run_here(spark, job)
    expect_first(job, 3)

    shutil.rmtree(job.checkpoint)
    shutil.move(newest, job.checkpoint)
    run_here(spark, job)
    expect_first(job, 4)


def test_two_jobs_with_one_name_are_refused_without_harm(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    """The job that came second is refused before it fences the first."""
    topic = make_topic("shared")
    mine = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    other = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])

    def write(sink: eos.Sink, query: str, batch_id: int) -> None:
        with sink.batch(batch_id, eos.Identity(query, f"run of {query}", f"offsets {batch_id}")) as txn:
            txn.write(spark.range(3).selectExpr(f"concat('{query}', {batch_id}) value"))

    write(mine, "mine", 0)
    with pytest.raises(eos.IdentityMismatch, match="Give this job a sink name of its own"):
        write(other, "other", 0)
    write(mine, "mine", 1)
    assert sorted(values_of(pulsar.service_url, topic)) == ["mine0"] * 3 + ["mine1"] * 3


def test_a_changed_name_on_an_old_checkpoint_is_refused(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    job = streaming(pulsar, make_topic, tmp_path, 2)
    run_here(spark, job, last=0)
    renamed = Job(job.service_url, job.topic, f"{job.name}-2", job.folder)
    with pytest.raises(eos.InvalidInput, match=f'belongs to the sink "{job.name}".*One query has one sink'):
        run_here(spark, renamed)
    run_here(spark, job)
    expect_first(job, 2)


def test_a_registration_that_cannot_be_read_is_refused(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    job = streaming(pulsar, make_topic, tmp_path, 2)
    run_here(spark, job, last=0)
    registration = job.checkpoint / "eos-sink.json"
    text = registration.read_text()
    (job.checkpoint / ".eos-sink.json.crc").unlink()
    registration.write_text("{")
    with pytest.raises(eos.DamagedLog, match="Restore the file from a backup"):
        run_here(spark, job)
    registration.write_text(text)
    run_here(spark, job)
    expect_first(job, 2)


# ---- how it is called


def test_a_batch_outside_a_query_must_say_whose_it_is(spark: SparkSession, pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("outside")
    sink = eos.sink(pulsar.service_url, topic=topic, name="outside")
    with pytest.raises(eos.InvalidInput, match=r"use sink.batch\(batch_id, identity=eos.Identity"):
        sink(spark.range(3).selectExpr("cast(id as string) value"), 0)
    with pytest.raises(eos.InvalidInput, match=r"Batch 0 has no txn.write\(\)"), sink.batch(0):
        pass
    assert values_of(pulsar.service_url, topic) == []


def test_speculation_is_refused(
    spark: SparkSession, pulsar: Any, make_topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic("speculation")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    session = SparkConf(loadDefaults=False).setAll(spark.sparkContext.getConf().getAll())
    monkeypatch.setattr(spark.sparkContext, "_conf", session.set("spark.speculation", "true"))
    with (
        pytest.raises(eos.InvalidInput, match=r"spark\.speculation is true"),
        sink.batch(0, eos.Identity("query", "run", "offsets")) as txn,
    ):
        txn.write(spark.range(3).selectExpr("cast(id as string) value"))
    assert sink.metrics.attempts == 0
    assert values_of(pulsar.service_url, topic) == []


def test_a_block_that_raises_writes_nothing(spark: SparkSession, pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("raises")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    identity = eos.Identity("query", "run", "offsets")

    def write_and_fail() -> None:
        with sink.batch(0, identity) as txn:
            txn.write(spark.range(3).selectExpr("cast(id as string) value"))
            raise LookupError("something of the user's own")

    with pytest.raises(LookupError, match="something of the user's own"):
        write_and_fail()
    assert sink.metrics.attempts == 0
    with sink.batch(0, identity) as txn:
        txn.write(spark.range(2).selectExpr("cast(id as string) value"))
    assert sorted(values_of(pulsar.service_url, topic)) == ["0", "1"]


def test_wrong_columns_and_topics_are_refused_before_anything_is_opened(
    spark: SparkSession, pulsar: Any, make_topic: Any
) -> None:
    topic = make_topic("columns")
    sink = eos.sink(pulsar.service_url, topic=topic, name=topic.rsplit("/")[-1])
    identity = eos.Identity("query", "run", "offsets")
    good = spark.range(3).selectExpr("cast(id as string) value")
    wrong = [
        (good.withColumnRenamed("value", "vlaue"), None, "no column 'value'.*Did you mean 'vlaue'"),
        (good.selectExpr("value", "value kee"), None, "'kee' means nothing.*Did you mean 'key'"),
        (spark.range(3).selectExpr("id value"), None, "'value' is bigint.*binary or string.*Cast it"),
        (good, f"{topic}-missing", "does not exist"),
        (good, "non-persistent://public/default/x", "not persistent"),
        (good, f"{topic}-partition-0", "names one partition"),
    ]

    def write_both(df: DataFrame, where: str | None) -> None:
        with sink.batch(0, identity) as txn:
            txn.write(good)
            txn.write(df, where)

    for df, where, words in wrong:
        with pytest.raises(eos.InvalidInput, match=words):
            write_both(df, where)
    assert sink.metrics.attempts == 0
    assert values_of(pulsar.service_url, topic) == []


@pytest.mark.parametrize("small_batch_rows", [1_000, 0], ids=["driver path", "task path"])
def test_a_row_without_a_topic_or_with_a_missing_one_is_refused(
    spark: SparkSession, pulsar: Any, make_topic: Any, small_batch_rows: int
) -> None:
    topic = make_topic("per-row")
    sink = eos.sink(pulsar.service_url, name=topic.rsplit("/")[-1], small_batch_rows=small_batch_rows)

    def write(rows: str, batch_id: int = 1) -> None:
        df = spark.sql(f"select 'x' value, col1 topic from values {rows} where col1 is null or col1 <> 'none'")
        with sink.batch(batch_id, eos.Identity("query", "run", f"offsets {batch_id}")) as txn:
            txn.write(df.coalesce(1))

    write("('none')", 0)
    with pytest.raises(eos.InvalidInput, match="row 1 has no topic, and nor has the sink"):
        write(f"('{topic}'), (null)")
    with pytest.raises(eos.TopicMissing, match=r"no-such-topic-.* does not exist"):
        write(f"('{topic}'), ('no-such-topic-{topic[-10:]}')")
    assert values_of(pulsar.service_url, topic) == []
    write(f"('{topic}')")
    assert values_of(pulsar.service_url, topic) == ["x"]


# ---- where it writes to


def test_a_missing_topic_is_refused_and_not_created(pulsar: Any, make_topic: Any) -> None:
    missing = f"{make_topic('there')}-not"
    for _ in range(2):
        with pytest.raises(eos.TopicMissing, match=r"does not exist\. Check its name, or create it first"):
            eos.sink(pulsar.service_url, topic=missing, name="missing")


def test_an_address_where_no_broker_listens_is_refused() -> None:
    with pytest.raises(eos.InvalidInput, match=r"The sink can't use pulsar://localhost:1: .*no firewall is in between"):
        eos.sink("pulsar://localhost:1", topic="rows", name="nobody")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("pulsar://localhost:6650", r'the admin URL "pulsar://localhost:6650" must begin with http:// or https://'),
        ("http://localhost:1", r'admin_url="http://localhost:1": .*Check that the broker is up and the admin URL'),
    ],
)
def test_an_admin_url_that_is_none_is_refused_at_start(pulsar: Any, make_topic: Any, url: str, words: str) -> None:
    with pytest.raises(eos.InvalidInput, match=words):
        eos.sink(pulsar.service_url, topic=make_topic("admin"), name="admin", admin_url=url)


def test_options_are_refused_before_any_connection() -> None:
    with pytest.raises(eos.InvalidInput, match=r"no option 'compresion'\. Did you mean 'compression'"):
        eos.sink("pulsar://localhost:1", topic="rows", name="typo", compresion="lz4")  # type: ignore[call-arg]


def test_the_control_topic_must_not_have_partitions(spark: SparkSession, pulsar: Any, make_topic: Any) -> None:
    topic = make_topic("data")
    control = make_topic("__eos-parts", partitions=2)
    name = control.rsplit("/")[-1].removeprefix("__eos-")
    sink = eos.sink(pulsar.service_url, topic=topic, name=name)
    with (
        pytest.raises(eos.InvalidInput, match=r"has 2 partitions. It must have none"),
        sink.batch(0, eos.Identity("query", "run", "offsets")) as txn,
    ):
        txn.write(spark.range(3).selectExpr("cast(id as string) value"))
    assert values_of(pulsar.service_url, topic) == []
