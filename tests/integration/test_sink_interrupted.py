"""Batches that are interrupted in one driver's life: by the ttl, a stop, a rival, a dying worker."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession

import eos
from eos.pulsar.wire.txn import TxnId
from eos.steps import Observer, Phase, Step, unobserved
from tests.contract.official import readable_now
from tests.crash.job import Job, expected_state, prepare, start
from tests.crash.moments import Gate, KillWorker, Moment
from tests.crash.process import account_for
from tests.reading import values_of

pytestmark = pytest.mark.slow

ROWS = 60
BOTH = pytest.mark.parametrize("small_batch_rows", [1_000, 0], ids=["driver path", "task path"])


@dataclass(frozen=True)
class Delay:
    """Sleeps at a moment, each time."""

    moment: Moment
    seconds: float

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if self.moment.is_at(step, phase, batch_id):
            time.sleep(self.seconds)


def identity(batch_id: int, run: str = "run") -> eos.Identity:
    return eos.Identity("query", run, f"offsets of batch {batch_id}")


def rows(spark: SparkSession, batch_id: int) -> DataFrame:
    start = batch_id * ROWS
    return spark.range(start, start + ROWS, numPartitions=2).selectExpr("cast(id as string) value")


def write(spark: SparkSession, sink: eos.Sink, batch_id: int, run: str = "run") -> None:
    with sink.batch(batch_id, identity(batch_id, run)) as txn:
        txn.write(rows(spark, batch_id))


def make_sink(pulsar: Any, topic: str, small_batch_rows: int, observer: Observer, **options: Any) -> eos.Sink:
    name = topic.rsplit("/")[-1]
    return eos.sink(
        pulsar.service_url,
        topic=topic,
        name=name,
        small_batch_rows=small_batch_rows,
        observer=observer,
        **options,
    )


def expect_batches(pulsar: Any, topic: str, *batches: int) -> None:
    expected = [str(row) for batch in batches for row in range(batch * ROWS, (batch + 1) * ROWS)]
    assert sorted(values_of(pulsar.service_url, topic)) == sorted(expected)


def records(pulsar: Any, topic: str) -> list[dict[str, Any]]:
    name = topic.rsplit("/")[-1]
    control = f"persistent://public/default/__eos-{name}"
    return [json.loads(data) for data in readable_now(pulsar.service_url, control)]


def is_open(pulsar: Any, txn: str) -> bool:
    """Ask the coordinator whether it still holds the transaction."""
    one = TxnId.parse(txn)
    answer = httpx.get(
        f"{pulsar.admin_url}/admin/v3/transactions/transactionMetadata/{one.most}/{one.least}", timeout=30
    )
    assert answer.status_code in (httpx.codes.OK, httpx.codes.NOT_FOUND), answer.text
    return answer.status_code == httpx.codes.OK


# ---- the time-to-live


@BOTH
def test_a_batch_that_outlives_its_transaction_says_which_option_to_raise(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, small_batch_rows: int
) -> None:
    topic = make_topic("ttl", partitions=2)
    write(spark, make_sink(pulsar, topic, small_batch_rows, unobserved), 0, run="first run")
    slow = Delay(Moment(Step.FIRST_SEND, "after", 1), seconds=2)
    sink = make_sink(pulsar, topic, small_batch_rows, slow, transaction_timeout_s=1)
    with pytest.raises(eos.TookTooLong, match="Raise the option `transaction_timeout_s`"):
        write(spark, sink, 1, run="slow run")
    assert (sink.metrics.attempts, sink.metrics.committed) == (1, 0), "it would take as long again"
    patient = make_sink(pulsar, topic, small_batch_rows, slow)
    write(spark, patient, 1, run="patient run")
    write(spark, patient, 2, run="patient run")
    expect_batches(pulsar, topic, 0, 1, 2)


# ---- dying workers


def test_a_killed_worker_costs_one_transaction(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    topic = make_topic("worker", partitions=2)
    steps = (Step.ADD_PARTITIONS, Step.FIRST_SEND, Step.ALL_SENT, Step.CLOSE_PRODUCERS)
    for batch_id, step in enumerate(steps):
        kill = KillWorker(Moment(step, "after", batch_id), str(tmp_path / step), os.getpid())
        sink = make_sink(pulsar, topic, 0, kill)
        write(spark, sink, batch_id, run=f"killed at {step}")
        assert (tmp_path / step / "killed").exists()
        assert (sink.metrics.attempts, sink.metrics.committed) == (2, 1)
    expect_batches(pulsar, topic, *range(len(steps)))


# ---- a rival


@BOTH
@pytest.mark.parametrize("step", [Step.INTENT, Step.ALL_SENT, Step.MARKER, Step.END_SENT])
def test_a_rival_takes_over_in_the_middle_of_a_batch(
    spark: SparkSession, pulsar: Any, make_topic: Any, small_batch_rows: int, step: Step, tmp_path: Path
) -> None:
    topic = make_topic("rival", partitions=2)
    gate = Gate(Moment(step, "before", 1), str(tmp_path / "gate"))
    sink = make_sink(pulsar, topic, small_batch_rows, gate)
    write(spark, sink, 0)
    problems: list[BaseException] = []

    def write_and_catch() -> None:
        try:
            write(spark, sink, 1)
        except eos.EosError as error:
            problems.append(error)

    thread = threading.Thread(target=write_and_catch)
    thread.start()
    gate.wait()
    # Another time-out makes it another client: nothing is shared within this process.
    rival = make_sink(pulsar, topic, small_batch_rows, gate, request_timeout_s=29)
    write(spark, rival, 1, run="the rival's run")
    write(spark, rival, 2, run="the rival's run")
    gate.open()
    thread.join()  # a fenced producer's send may get no answer, and ends by its own time-out
    assert [type(problem) for problem in problems] == [eos.Fenced]
    with pytest.raises(eos.Fenced):
        write(spark, sink, 2)
    write(spark, rival, 3, run="the rival's run")
    expect_batches(pulsar, topic, 0, 1, 2, 3)


# ---- stop, and replay


def streaming(pulsar: Any, make_topic: Any, folder: Path, *, files: int = 3, **fields: Any) -> Job:
    return prepare(pulsar.service_url, make_topic("stream", partitions=2), folder, files, ROWS, **fields)


def noting(sink: Any, problems: list[BaseException]) -> Callable[[DataFrame, int], None]:
    """The sink as Spark calls it; what it raises is noted on the way."""

    def write_and_note(df: DataFrame, batch_id: int) -> None:
        try:
            sink(df, batch_id)
        except BaseException as error:
            problems.append(error)
            raise

    return write_and_note


def test_stop_aborts_the_batch_and_the_next_start_writes_it(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path
) -> None:
    job = streaming(pulsar, make_topic, tmp_path)
    gate = Gate(Moment(Step.FIRST_SEND, "after", 1), str(tmp_path / "gate"))
    sink = make_sink(pulsar, job.topic, 0, gate)
    problems: list[BaseException] = []
    query = start(spark, job, noting(sink, problems))
    gate.wait()
    open_now = [record["txn"] for record in records(pulsar, job.topic) if record["kind"] == "intent"][-1]
    assert is_open(pulsar, open_now)
    query.stop()
    assert not Path(gate.folder, "open").exists(), "it returned while the task still stood before the gate"
    assert not query.isActive
    assert [type(problem) for problem in problems] == [eos.Stopped]
    assert not is_open(pulsar, open_now)
    assert sink.metrics.open_transaction_s is None
    assert account_for(pulsar.service_url, job.topic, 1, ROWS).is_exact()

    gate.open()
    start(spark, job, sink).awaitTermination()
    assert sink.metrics.committed == 3
    assert account_for(pulsar.service_url, job.topic, 3, ROWS).is_exact()


@pytest.mark.parametrize(
    "moment",
    [Moment(Step.FIRST_SEND, "after", 1), Moment(Step.END_SENT, "before", 1)],
    ids=["after the first frame", "before the commit"],
)
def test_a_stop_on_the_driver_path_leaves_the_batch_whole_or_not_there(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, moment: Moment
) -> None:
    """No Spark job is running that a stop could cancel: the batch in hand is finished or given up, never left open."""
    job = streaming(pulsar, make_topic, tmp_path)
    gate = Gate(moment, str(tmp_path / "gate"))
    sink = make_sink(pulsar, job.topic, 1_000, gate)
    problems: list[BaseException] = []
    query = start(spark, job, noting(sink, problems))
    gate.wait()
    in_hand = [record["txn"] for record in records(pulsar, job.topic) if record["kind"] == "intent"][-1]
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    while query.isActive:
        time.sleep(0.05)
    assert is_open(pulsar, in_hand)
    gate.open()
    stopping.join()
    assert [type(problem) for problem in problems] in ([], [eos.Stopped])
    assert not is_open(pulsar, in_hand)
    seen = 1 if problems else 2
    assert sink.metrics.committed == seen
    assert account_for(pulsar.service_url, job.topic, seen, ROWS).is_exact()

    again = make_sink(pulsar, job.topic, 1_000, unobserved, request_timeout_s=29)
    start(spark, job, again).awaitTermination()
    assert account_for(pulsar.service_url, job.topic, 3, ROWS).is_exact()


def test_a_replay_that_spark_cannot_run_says_that_the_log_has_the_batch(
    spark: SparkSession, pulsar: Any, make_topic: Any
) -> None:
    topic = make_topic("replay", partitions=2)
    write(spark, make_sink(pulsar, topic, 1_000, unobserved), 0)
    again = make_sink(pulsar, topic, 1_000, unobserved)
    words = r"Nothing of batch 0 was to be written, since the control log has it as committed.*CAST_INVALID_INPUT"
    with pytest.raises(eos.ReplayFailed, match=words), again.batch(0, identity(0, "the next run")) as txn:
        txn.write(rows(spark, 0).selectExpr("cast(cast(concat('n', value) as int) as string) value"))
    expect_batches(pulsar, topic, 0)


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
@BOTH
def test_a_batch_that_spark_forgot_to_commit_is_skipped(
    spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, stateful: bool, small_batch_rows: int
) -> None:
    job = streaming(pulsar, make_topic, tmp_path, stateful=stateful)
    name = job.topic.rsplit("/")[-1]
    options: dict[str, Any] = {"topic": job.topic, "name": name, "small_batch_rows": small_batch_rows}
    sink = eos.sink(pulsar.service_url, **options)

    def die_after(df: DataFrame, batch_id: int) -> None:
        sink(df, batch_id)
        if batch_id == 1:
            raise RuntimeError("before Spark could write its own commit")

    with pytest.raises(Exception, match="before Spark could write its own commit"):
        start(spark, job, die_after).awaitTermination()
    assert not (job.checkpoint / "commits" / "1").exists()

    again = eos.sink(pulsar.service_url, **options)
    start(spark, job, again).awaitTermination()
    assert (again.metrics.skipped, again.metrics.committed, again.metrics.attempts) == (1, 1, 1)
    assert account_for(pulsar.service_url, job.topic, 3, ROWS, stateful=stateful).is_exact()
    if stateful:
        state = spark.read.format("statestore").load(str(job.checkpoint)).selectExpr("key.key", "value.count")
        assert {row["key"]: row["count"] for row in state.collect()} == expected_state(3, ROWS)
