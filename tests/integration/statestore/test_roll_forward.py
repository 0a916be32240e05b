"""State from a savepoint older than its output is rolled forward, and the query goes on: nothing is lost or doubled."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from eos.doctor.abort import OwnerAlive
from eos.spark.capabilities import TABLE, Capability
from statestore import read_state, savepoints
from statestore.errors import InvalidInput, Unavailable
from statestore.hadoop.file_systems import Hadoop
from statestore.roll_forward import RollForwardStep, restore_in_step
from tests.child_process import ChildProcess, python
from tests.conftest import MakeTopic
from tests.integration.statestore.in_step_job import CountingJob, counted, newest, settings, written
from tests.reading import values_of
from tests.waiting import until_batch


class Crash(Exception):
    pass


def state(spark: SparkSession, checkpoint: str, batch: int) -> dict[int, int]:
    return {row.key[0]: row.value[0] for row in read_state(checkpoint, batch, spark=spark).collect()}


def made(
    pulsar: Any, make_topic: MakeTopic, source: str = "rate-micro-batch", folder: str = ""
) -> tuple[CountingJob, str]:
    """A job, and a name for its savepoint."""
    name = f"s{uuid.uuid4().hex[:10]}"
    return CountingJob(pulsar.service_url, make_topic("counts"), name, source, folder), f"{name}-at-2"


def test_a_roll_forward_that_dies_after_each_step_goes_on(
    spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic
) -> None:
    job, name = made(pulsar, make_topic)
    live, target = f"{bk}/live", f"{bk}/restored"
    job.run_to(spark, live, 2)
    savepoint = savepoints.create(name, live)
    job.run_to(spark, live, savepoint.batch_id + 4)
    query = job(spark, live, {"processingTime": "1 hour"})
    until_batch(query, savepoint.batch_id + 4)
    hadoop = Hadoop.of(spark)

    with pytest.raises(OwnerAlive, match="Stop its query first"):
        restore_in_step(name, target, job, job.output, spark=spark)
    assert hadoop.status(target) is None
    query.stop()
    job.close()

    hadoop.delete(live, recursive=True)
    output_at = newest(job.output)
    assert output_at >= savepoint.batch_id + 4
    seen: list[tuple[RollForwardStep, int]] = []
    for step in RollForwardStep:

        def dies(reached: RollForwardStep, batch: int, at: RollForwardStep = step) -> None:
            seen.append((reached, batch))
            if reached is at:
                raise Crash

        with pytest.raises(Crash):
            restore_in_step(name, target, job, job.output, spark=spark, observer=dies)
    done = restore_in_step(name, target, job, job.output, spark=spark)
    assert (done.batch_id, done.replayed) == (output_at, 0)
    replayed = [batch for step, batch in seen if step is RollForwardStep.REPLAY]
    assert replayed == list(range(savepoint.batch_id + 1, output_at + 1)), "each once, in order"
    assert [step for step, _ in seen].count(RollForwardStep.RESTORE) == 1
    assert newest(job.output) == output_at, "nothing was written"
    assert state(spark, target, output_at) == counted(output_at)
    assert 'rolls_forward_from": null' in hadoop.read(f"{target}/eos-sink.json").decode()

    job.run_to(spark, target, output_at + 2)
    last = newest(job.output)
    assert last >= output_at + 2
    assert sorted(values_of(pulsar.service_url, job.topic)) == written(range(last + 1))
    assert state(spark, target, last) == counted(last)
    savepoints.delete(name, bk)


def test_files_are_read_again_as_the_original_has_noted_them(
    spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    job, name = made(pulsar, make_topic, source="files", folder=str(tmp_path / "input"))
    live, target = f"{bk}/live", f"{bk}/restored"
    hadoop = Hadoop.of(spark)
    job.add_files(3)
    job(spark, live, {"availableNow": True}).awaitTermination()
    savepoint = savepoints.create(name, live)
    assert json.loads(hadoop.read(f"{live}/eos-keep.json")) == {"markers_since": savepoint.batch_id + 1}
    job.add_files(9)  # Spark makes one file of the source's log after the tenth entry
    job(spark, live, {"availableNow": True}).awaitTermination()
    output_at = newest(job.output)
    job.close()

    gone = f"{bk}/gone"
    with pytest.raises(
        InvalidInput, match=rf"entry {output_at} must be in {gone}/sources/0, and the log there is missing"
    ):
        restore_in_step(name, target, job, job.output, spark=spark, source_logs_of=gone)
    assert hadoop.status(target) is None, "refused before anything was changed"

    # The user starts the query on a plain restore: Spark plans a batch of other files, and the sink refuses it.
    savepoints.restore(name, target)
    job.add_files(2)
    with pytest.raises(Exception, match="StaleBatch"):
        job(spark, target, {"once": True}).awaitTermination()
    job.close()

    def endless(spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        return job(spark, checkpoint, {"processingTime": "0 seconds"})

    # It fails at the first batch that the log doesn't have, or is told to end, should it take a minute to get there.
    with pytest.raises(
        (Unavailable, InvalidInput), match=r"exactly batch|could not be replayed|goes on after its batch"
    ):
        restore_in_step(name, target, endless, job.output, spark=spark)
    job.close()
    done = restore_in_step(name, target, job, job.output, spark=spark)
    assert done.batch_id == output_at
    assert state(spark, target, output_at) == counted(output_at)
    job.close()

    job(spark, target, {"availableNow": True}).awaitTermination()
    job.close()
    assert newest(job.output) == 13
    assert sorted(values_of(pulsar.service_url, job.topic)) == written(range(14))
    assert state(spark, target, 13) == counted(13)

    savepoints.delete(name, bk)
    assert hadoop.status(f"{live}/eos-keep.json") is None


@pytest.mark.crash
@pytest.mark.needs(TABLE[Capability.READS_STATE])
@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_the_command_goes_on_after_it_was_killed(
    spark: SparkSession, bk: str, pulsar: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    job, name = made(pulsar, make_topic)
    live, target = f"{bk}/live", f"{bk}/restored"
    job.run_to(spark, live, 1)
    savepoint = savepoints.create(name, live)
    job.run_to(spark, live, savepoint.batch_id + 4)
    output_at = newest(job.output)

    with ChildProcess(command(job, name, target), tmp_path / "first.log", job.environment) as first:
        first.until(lambda: "was run again" in first.logged)
    said = first.logged.splitlines()
    again = [line for line in said if "was run again" in line]
    assert again[0] == f"batch {savepoint.batch_id + 1} was run again", said

    second = ChildProcess(command(job, name, target, "--json"), tmp_path / "second.log", job.environment)
    second.finish()
    done = json.loads(second.output)
    assert done["batch"] == output_at
    assert done["began_at"] > savepoint.batch_id
    assert state(spark, target, output_at) == counted(output_at)
    assert newest(job.output) == output_at
    savepoints.delete(name, bk)


def command(job: CountingJob, savepoint: str, target: str, *more: str) -> list[str]:
    given = [savepoint, target, "--in-step", "--job", "tests.integration.statestore.in_step_job:start"]
    given += ["--sink", job.name, "--service-url", job.service_url]
    for setting in settings():
        given += ["--conf", setting]
    return python("statestore.cli.app", "restore", *given, *more)
