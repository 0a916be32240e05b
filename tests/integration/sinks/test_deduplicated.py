"""`guarantee="deduplicated"` on real brokers: one without transactions, replays that fit and replays that don't."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.delivery.alone import Alone
from eos.errors import ConnectionLost
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.steps import Phase, Step
from tests.conftest import create_topic
from tests.contract.raw import client
from tests.crash.here import run_here
from tests.crash.job import Job, expected_rows, prepare, start
from tests.deduplication import deduplicate
from tests.reading import just_values, values_of

ROWS, FILES, PARTITIONS = 30, 4, 2
BY_DRIVER, BY_TASKS = 1_000, 0
Values = Callable[[], Counter[str]]


@dataclass(frozen=True)
class Break:
    """Fails behind the first frame, as a connection does that is lost: once each time the file is taken away."""

    path: str

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        path = Path(self.path)
        if (step, phase) == (Step.FIRST_SEND, "after") and not path.exists():
            path.touch()
            raise ConnectionLost("the test cut it")


@pytest.fixture
def job(pulsar: Any, make_topic: Any, tmp_path: Path) -> Job:
    """Four micro-batches onto two partitions that deduplicate; the last try of each batch is the first."""
    topic = make_topic("dedup", partitions=PARTITIONS)
    deduplicate(pulsar.admin_url, topic, PARTITIONS)
    options = {"guarantee": "deduplicated", "admin_url": pulsar.admin_url, "attempts": 1}
    return prepare(pulsar.service_url, topic, tmp_path, FILES, ROWS, options=options)


@pytest.fixture
def stored(job: Job) -> Values:
    """What the topic holds now."""
    return lambda: Counter(values_of(job.service_url, job.topic))


def broken(job: Job, **options: Any) -> Job:
    """The job, whose next batch breaks behind its first frame."""
    path = Path(job.folder, "broken")
    path.unlink(missing_ok=True)
    return replace(job, options={**job.options, **options, "observer": Break(str(path))})


def whole(batches: int = FILES) -> Counter[str]:
    return Counter(expected_rows(batches, ROWS, stateful=False).keys())


def break_batch(spark: SparkSession, job: Job, stored: Values, small: int, after: int | None = None) -> Counter[str]:
    """Run the job into a batch that is sent in part, behind `after` whole ones; return what is stored then."""
    if after is not None:
        run_here(spark, with_(job, small_batch_rows=small), last=after)
    with pytest.raises(eos.Unacknowledged, match="the test cut it"):
        run_here(spark, broken(job, small_batch_rows=small))
    found = stored()
    done = 0 if after is None else after + 1
    assert whole(done) < found < whole(done + 1), "the batch is not stored in part"
    return found


def with_(job: Job, **options: Any) -> Job:
    return replace(job, options={**job.options, **options})


@pytest.mark.parametrize("small", [BY_DRIVER, BY_TASKS], ids=["driver", "tasks"])
def test_a_replay_sends_what_is_not_stored_by_the_way_the_batch_was_begun(
    spark: SparkSession, pulsar: Any, job: Job, stored: Values, small: int
) -> None:
    """Whatever the options say now; also by a broker that has forgotten every name; and over the partitions of then."""
    break_batch(spark, job, stored, small, after=0)
    deduplicate(pulsar.admin_url, job.topic, PARTITIONS, on=False)
    deduplicate(pulsar.admin_url, job.topic, PARTITIONS)
    path = job.topic.replace("://", "/")
    httpx.post(f"{pulsar.admin_url}/admin/v2/{path}/partitions", json=PARTITIONS + 1, timeout=30).raise_for_status()
    finished: list[eos.FinishedBatch] = []
    other = BY_TASKS if small else BY_DRIVER
    run_here(spark, with_(job, small_batch_rows=other, compression="zstd", metrics=finished.append))
    assert stored() == whole()
    assert [(one.batch_id, one.outcome, sum(one.rows.values())) for one in finished] == [
        (batch, "committed", ROWS) for batch in (1, 2, 3)
    ]


def test_a_try_that_fails_is_gone_on_with_in_the_same_run(spark: SparkSession, job: Job, stored: Values) -> None:
    sink = run_here(spark, with_(broken(job, small_batch_rows=BY_TASKS), attempts=3))
    assert stored() == whole()
    assert (sink.metrics.committed, sink.metrics.attempts, sink.metrics.rows) == (FILES, FILES + 1, FILES * ROWS)


@pytest.mark.parametrize("small", [BY_DRIVER, BY_TASKS], ids=["driver", "tasks"])
def test_a_replay_with_other_rows_is_refused_and_sends_nothing(
    spark: SparkSession, job: Job, stored: Values, small: int
) -> None:
    before = break_batch(spark, job, stored, small, after=0)
    with pytest.raises(eos.InvalidInput, match=r"batch 1 differs from what was begun: .* now it has other ones for it"):
        run_changed(spark, job, lambda df: df.selectExpr("key", "uuid() as value"))
    with pytest.raises(eos.InvalidInput, match=r"now it has only \d+ for it"):
        run_changed(spark, job, lambda df: df.limit(1))
    assert stored() == before
    with pytest.raises(eos.InvalidInput, match=r"Changed since: key_hash was murmur3 and is java"):
        run_here(spark, with_(job, key_hash="java"))
    assert stored() == before
    run_here(spark, job)
    assert stored() == whole()


def run_changed(spark: SparkSession, job: Job, change: Callable[[DataFrame], DataFrame]) -> None:
    """Run the job with other rows than it has. Raises what the sink does."""
    sink = eos.sink(job.service_url, topic=job.topic, name=job.name, **job.options)
    raised: list[Exception] = []

    def write(df: DataFrame, batch_id: int) -> None:
        try:
            sink(change(df), batch_id)
        except Exception as error:
            raised.append(error)
            raise

    with contextlib.suppress(Exception):
        start(spark, job, write).awaitTermination()
    sink.close()
    if raised:
        raise raised[0]


def test_a_partition_that_has_some_frames_of_a_task_gets_the_others(
    spark: SparkSession, job: Job, stored: Values
) -> None:
    """Cut in another way, and compressed: rows are compared, and not frames."""

    def large(df: DataFrame) -> DataFrame:
        return df.selectExpr("key", "concat(value, '-', repeat('x', 120000)) as value")

    by_tasks = with_(job, small_batch_rows=BY_TASKS)
    with pytest.raises(eos.Unacknowledged, match="the test cut it"):
        run_changed(spark, broken(by_tasks), large)
    assert 2 < len(stored()) < ROWS / 2
    run_changed(spark, with_(by_tasks, compression="zstd"), large)
    assert Counter(value.partition("-")[0] for value in stored().elements()) == whole()


def test_an_aggregation_that_is_sorted_goes_on_with_its_state(spark: SparkSession, job: Job, stored: Values) -> None:
    counts = replace(with_(job, small_batch_rows=BY_TASKS), stateful=True)

    def ordered(df: DataFrame) -> DataFrame:
        return df.sortWithinPartitions("key")

    with pytest.raises(eos.Unacknowledged, match="the test cut it"):
        run_changed(spark, broken(counts), ordered)
    run_changed(spark, with_(counts, attempts=5), ordered)
    assert stored() == Counter(expected_rows(FILES, ROWS, stateful=True).keys())


def test_rows_stored_by_a_task_that_a_replay_lacks_are_not_forgotten(
    spark: SparkSession, job: Job, stored: Values
) -> None:
    """A task of a job that failed may send on for a moment: then a try finds more than it has looked at, and ends."""
    several = with_(replace(job, spread=2), small_batch_rows=BY_TASKS, attempts=5)
    with pytest.raises(eos.Unacknowledged, match="the test cut it"):
        run_here(spark, with_(broken(several), attempts=1))
    with pytest.raises(eos.InvalidInput, match="batch 0 differs from what was begun"):
        run_here(spark, replace(several, spread=1))
    run_here(spark, several)
    assert stored() == whole()


def test_a_checkpoint_from_a_backup_is_refused_also_by_a_broker_that_forgot(
    spark: SparkSession, pulsar: Any, job: Job, stored: Values
) -> None:
    run_here(spark, job, last=0)
    shutil.copytree(job.checkpoint, Path(job.folder, "backup"))
    run_here(spark, job, last=2)
    for _ in range(2):
        shutil.rmtree(job.checkpoint)
        shutil.copytree(Path(job.folder, "backup"), job.checkpoint)
        with pytest.raises(eos.StaleBatch, match="Give the checkpoint that belongs to the output"):
            run_here(spark, job)
        deduplicate(pulsar.admin_url, job.topic, PARTITIONS, on=False)
        deduplicate(pulsar.admin_url, job.topic, PARTITIONS)
    assert stored() == whole(3)


def test_another_query_under_the_name_is_refused(spark: SparkSession, job: Job, stored: Values) -> None:
    by_tasks = with_(job, small_batch_rows=BY_TASKS)
    run_here(spark, by_tasks, last=1)
    shutil.rmtree(job.checkpoint)
    with pytest.raises(eos.StaleBatch, match="Every query needs a name= of its own"):
        run_here(spark, by_tasks)
    assert stored() == whole(2)


def test_a_second_driver_waits_for_the_first_one_to_end(
    spark: SparkSession, job: Job, stored: Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_tasks = with_(job, small_batch_rows=BY_TASKS)
    part = f"{job.topic}-partition-0"
    before = break_batch(spark, job, stored, BY_TASKS)
    with client(job.service_url) as other, monkeypatch.context() as patch:
        patch.setattr("eos.sinks.deduplicated.Alone", impatient)
        for name in ("owner", "0.7"):  # of its driver, and of a task that this query does not have
            producer = other.producer(part, name=f"eos-deduplicated-{job.name}.{name}")
            with pytest.raises(eos.Unacknowledged, match='another driver is at work with the sink "dedup-'):
                run_here(spark, by_tasks)
            producer.close()
        assert stored() == before
    run_here(spark, by_tasks)
    assert stored() == whole()


def impatient(client: Client, admin: Admin, sink: str, _: float, *rest: Any) -> Alone:
    """Return one that waits two seconds for the other; what is asked of the broker may take its time."""
    return Alone(client, admin, sink, 2.0, *rest)


def test_what_was_deleted_since_the_batch_was_begun_is_not_taken_for_nothing(
    spark: SparkSession, pulsar: Any, job: Job, stored: Values
) -> None:
    """Part of a batch was stored, read and deleted."""
    break_batch(spark, job, stored, BY_TASKS)
    for part in range(PARTITIONS):
        topic = f"{job.topic}-partition-{part}"
        url = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"
        httpx.put(
            f"{url}/unload", timeout=30
        ).raise_for_status()  # which begins a ledger; the last one is never deleted
        httpx.delete(f"{url}/truncate", timeout=30).raise_for_status()
    with pytest.raises(eos.DamagedLog, match="it can't be known which rows of batch 0"):
        run_here(spark, job)
    assert stored() == Counter()


def test_guarantees_follow_one_another_where_no_batch_is_in_doubt(
    spark: SparkSession, job: Job, stored: Values
) -> None:
    strict, plain = (replace(job, options={"guarantee": one}) for one in ("exactly-once", "at-least-once"))
    run_here(spark, strict, unnoted=0)
    with pytest.raises(eos.InvalidInput, match='was begun with guarantee="exactly-once"'):
        run_here(spark, job)
    run_here(spark, strict, last=0)
    break_batch(spark, job, stored, BY_TASKS, after=1)
    with pytest.raises(eos.InvalidInput, match='batch 2 was begun with guarantee="deduplicated"'):
        run_here(spark, strict)
    run_here(spark, job, last=2)
    run_here(spark, plain, unnoted=3)
    with pytest.raises(eos.InvalidInput, match='batch 3 was begun with guarantee="at-least-once"'):
        run_here(spark, job)
    assert stored() == whole()


# ---- a broker without transactions


def test_a_broker_without_transactions_is_written_to_and_one_that_lets_duplicates_in_is_refused(
    spark: SparkSession, start_pulsar: Callable[..., LocalPulsar], tmp_path: Path
) -> None:
    broker = start_pulsar(settings={"transactionCoordinatorEnabled": "false"})
    topic, other = (create_topic(broker.admin_url, stem, count) for stem, count in (("strict", 2), ("plain", 0)))
    options: dict[str, Any] = {"guarantee": "deduplicated", "admin_url": broker.admin_url, "small_batch_rows": 0}
    job = prepare(broker.service_url, topic, tmp_path, FILES, ROWS, options=options)
    with pytest.raises(eos.InvalidInput, match=r"it is Disabled\. Switch it on for the topic: pulsar-admin"):
        run_here(spark, job)
    deduplicate(broker.admin_url, topic, 2)
    sink = eos.sink(job.service_url, topic=topic, name=job.name, **options)

    for column in ("topic", "__topic"):
        with pytest.raises(eos.InvalidInput, match=f"a row can't name its topic.* Drop the column '{column}'"):
            sink.check(spark.range(1).selectExpr("'a' value", f"'{other}' {column}"))
    with (
        pytest.raises(eos.InvalidInput, match="outside a streaming query there is none"),
        sink.batch(0, eos.Identity("query", "run", "offsets")) as txn,
    ):
        txn.write(spark.range(1).selectExpr("'a' value"))

    def write(df: DataFrame, batch_id: int) -> None:
        with sink.batch(batch_id) as txn:
            txn.write(df)
            txn.write(df.selectExpr("concat(value, '+') as value"), other)

    with pytest.raises(Exception, match=f"on {other} it is Disabled"):
        start(spark, job, write).awaitTermination()
    deduplicate(broker.admin_url, other)
    start(spark, job, write).awaitTermination()
    sink.close()
    assert just_values(broker.service_url, topic, FILES * ROWS) == whole()
    assert just_values(broker.service_url, other, FILES * ROWS) == Counter(f"{row}+" for row in whole())
    with Admin(broker.admin_url) as admin:
        assert admin.setting("transactionCoordinatorEnabled") == "false"
