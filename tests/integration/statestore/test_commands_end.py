"""Each command of `statestore` that ends well, in a process of its own, prints no stack trace of a library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pyspark.sql import SparkSession

from statestore.cli.app import typer_app
from tests.child_process import ChildProcess, python
from tests.conftest import MakeTopic
from tests.integration.statestore.in_step_job import CountingJob
from tests.integration.statestore.test_roll_forward import made
from tests.traces import traces

JOB = "tests.integration.statestore.in_step_job"
CONF = [
    *("--conf", "spark.master=local[2]", "--conf", "spark.sql.shuffle.partitions=2"),
    *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=localhost"),
]
IN_FILES_OF_THEIR_OWN = {("drill",), ("drill", "total-loss")}
"""They take minutes: test_drill.py and test_total_loss.py ask the same of them."""


def lines(bk: str, saved: str, topic: str, job: CountingJob, reports: Path) -> Iterator[tuple[str, ...]]:
    """Command lines that all end well, in this order; the job runs, and what is restored of it is let be."""
    live, output = f"{bk}/live", ("--sink", job.name, "--service-url", job.service_url)
    in_step = ("--job", f"{JOB}:start", *output)
    yield ("jar",)
    yield ("ls", "-r", live)
    yield ("stat", f"{live}/metadata")
    yield ("cat", f"{live}/metadata")
    yield ("du", live)
    yield ("snapshots", live)
    yield ("verify", live)
    yield ("cp", live, f"{bk}/copied")
    yield ("diff", f"{bk}/copied", f"{bk}/copied", *CONF)
    yield ("savepoint", "create", saved, live)
    yield ("savepoint", "create", saved, live, "--to", topic)
    yield ("savepoint", "every", live, "--once")
    yield ("savepoint", "list", bk)
    yield ("savepoint", "list", topic)
    yield ("savepoint", "restore", topic, f"{bk}/from-topic")
    yield ("restore", saved, f"{bk}/restored")
    yield ("rescale", saved, f"{bk}/rescaled", "--partitions", "3", *CONF)
    yield ("drill", "rehearse", live, *output, *CONF, "--report", str(reports / "rehearsal"))
    yield ("drill-report", str(reports / "rehearsal" / "journal.jsonl"))
    yield ("drill", "shadow", live, *in_step, *CONF, "--batches", "1", "--report", str(reports / "shadow"))
    yield ("savepoint", "delete", saved, bk)
    yield ("rm", "-r", "--yes", f"{bk}/copied")
    yield ("gc", bk)
    yield ("orphans", bk)


def words_of(command: Any) -> Iterator[tuple[str, ...]]:
    """Yield each command below this one that does something, by its words."""
    inner = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:
        yield ()
    for name, one in inner.items():
        for words in words_of(one):
            yield (name, *words)


def test_no_command_is_left_out(tmp_path: Path) -> None:
    given = list(lines("bk://z", "s", "t", CountingJob("", "", ""), tmp_path))
    commands = set(words_of(typer.main.get_command(typer_app)))
    assert commands - IN_FILES_OF_THEIR_OWN == {
        next(words for words in sorted(commands, key=len, reverse=True) if line[: len(words)] == words)
        for line in given
    }


@pytest.fixture
def running(
    bk: str, spark: SparkSession, pulsar: Any, make_topic: MakeTopic, tmp_path: Path
) -> Iterator[tuple[CountingJob, str]]:
    """A job at work, in a process of its own, and a name for its savepoint."""
    job, name = made(pulsar, make_topic)
    job.run_to(spark, f"{bk}/live", 2)
    with job.at_work(f"{bk}/live", tmp_path / "driver.log") as process:
        yield job, name
        assert process.alive


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_a_command_that_ends_well_prints_no_stack_trace(
    running: tuple[CountingJob, str], bk: str, pulsar: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    job, saved = running
    topic = f"{pulsar.service_url}/{make_topic('savepoints').removeprefix('persistent://')}"
    found = {}
    for line in lines(bk, saved, topic, job, tmp_path):
        command = ChildProcess(python("statestore.cli.app", *line), tmp_path / "command.log", job.environment)
        code = command.wait()
        said = command.output + command.logged
        if code or traces(said):
            found[" ".join(line[:2])] = code, said[-3_000:]
    assert found == {}
