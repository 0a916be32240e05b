"""Rehearsal and shadow beside a job that runs: they find the state right or wrong, and leave no trace."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from statestore import savepoints
from statestore.drills.acts.acts import perform
from statestore.drills.acts.rehearsal import SCRATCH, Live, rehearse
from statestore.drills.acts.shadow import Shadow, follow
from statestore.drills.journal import CheckEvent, NotTested, StepEvent, read
from statestore.drills.judge.findings import Verdict
from statestore.drills.report.summary import summarize
from statestore.hadoop.file_systems import Hadoop
from tests.child_process import ChildProcess
from tests.conftest import create_topic
from tests.integration.statestore.in_step_job import CountingJob, newest, written
from tests.integration.statestore.test_roll_forward import made
from tests.reading import values_of


class OtherCode(CountingJob):
    """The code of an upgrade that goes wrong: it overlooks some of the input."""

    def _input(self, spark: SparkSession) -> DataFrame:
        return super()._input(spark).where("value % 10 != 7")


@pytest.fixture(scope="module")
def bk(zookeeper: str) -> str:
    """The address of a folder for this file's job."""
    return f"bk://{zookeeper}/{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, bk: str, pulsar: Any) -> Iterator[tuple[CountingJob, Live]]:
    """A job that has run, with a savepoint."""
    job, name = made(pulsar, partial(create_topic, pulsar.admin_url))
    checkpoint = f"{bk}/live"
    job.run_to(spark, checkpoint, 1)
    savepoints.create(name, checkpoint)
    yield job, Live(checkpoint, spark, job.output)
    savepoints.delete(name, bk)


@pytest.fixture
def running(stopped: tuple[CountingJob, Live], tmp_path: Path) -> Iterator[ChildProcess]:
    """The job at work, in a process of its own: Spark allows one run of a query in one application."""
    job, live = stopped
    with job.at_work(live.checkpoint, tmp_path / "driver.log") as process:
        yield process


def test_a_shadow_of_a_job_that_stands_still_is_unknown(stopped: tuple[CountingJob, Live], tmp_path: Path) -> None:
    _, live = stopped

    def never(spark: SparkSession, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
        raise AssertionError("there is nothing to run")

    path = perform("shadow", tmp_path / "a", "again", partial(follow, live, Shadow(never, timeout_s=2)))
    found = summarize(read(path)).summary
    assert found.verdict is Verdict.UNKNOWN
    assert "has committed no batch after" in found.reasons[0]


def test_rehearsal_and_shadow_beside_a_running_job(
    stopped: tuple[CountingJob, Live], running: ChildProcess, bk: str, pulsar: Any, tmp_path: Path
) -> None:
    job, live = stopped
    path = perform("rehearsal", tmp_path / "a", "again", partial(rehearse, live))
    events = read(path)
    checks = {event.name: event.passed for event in events if isinstance(event, CheckEvent)}
    assert summarize(events).summary.verdict is Verdict.PASS, [e for e in events if isinstance(e, CheckEvent)]
    assert checks["the state of a cut of the checkpoint is the live one's"]
    assert len(checks) == 6, "three of the cut and three of the savepoint"
    assert [event for event in events if isinstance(event, NotTested)] == []
    assert all(event.seconds >= 0 for event in events if isinstance(event, StepEvent))

    path = perform("shadow", tmp_path / "b", "again", partial(follow, live, Shadow(job)))
    assert summarize(read(path)).summary.verdict is Verdict.PASS, [e for e in read(path) if isinstance(e, CheckEvent)]
    other = OtherCode(job.service_url, job.topic, job.name)
    path = perform("shadow", tmp_path / "c", "again", partial(follow, live, Shadow(other, batches=1)))
    found = summarize(read(path)).summary
    assert found.verdict is Verdict.FAIL
    assert "the state of the shadow is the live one's" in found.reasons[0]

    assert running.alive, "the live job was not disturbed"
    running.kill()
    job(live.spark, live.checkpoint, {"once": True}).awaitTermination()
    job.close()
    last = newest(job.output)
    assert sorted(values_of(pulsar.service_url, job.topic)) == written(range(last + 1)), "the shadows wrote nothing"
    hadoop = Hadoop.of(live.spark)
    assert hadoop.list(f"{bk.rsplit('/', 1)[0]}{SCRATCH}") == []
    assert [one.name for one in savepoints.list_savepoints(bk) if one.name.startswith("rehearsal-")] == []
