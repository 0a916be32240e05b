"""SIGKILL in mid-rescaling and mid-bootstrap: the original stays, and the unfinished target is not a checkpoint."""

from __future__ import annotations

import re
import shutil
import signal
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from eos.spark.capabilities import TABLE, Capability
from statestore import InvalidInput, bootstrap, rescale, savepoints, state_difference, verify
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.logs import is_begun
from statestore.cli.app import typer_app
from statestore.hadoop.file_systems import Hadoop
from tests.child_process import ChildProcess, python
from tests.integration.statestore.rewriting_job import Work, sums
from tests.integration.statestore.test_rescaling import clean_end
from tests.soak.queries import run
from tests.spark_session import quick_start

PATIENCE_S = 300


def drive(work: Work, folder: Path) -> tuple[int, list[str]]:
    """Run a driver; return how it ended, and the moments that came."""
    command = python("tests.integration.statestore.rewriting_job", work)
    driver = ChildProcess(command, folder / "driver.log", quick_start(with_bk=True))
    code = driver.wait(PATIENCE_S)
    moments = [line for line in driver.output.splitlines() if re.match(r"(before|after|there is) ", line)]
    assert code in (0, 1, -signal.SIGKILL), driver.tail()
    return code, moments


def killed(work: Work, folder: Path) -> None:
    """Run a driver that must die where it was asked to."""
    code, moments = drive(work, folder)
    assert code == -signal.SIGKILL, f"it was to die at {work.die or work.die_when}, and came past {moments}"
    assert moments[-1] == (work.die or f"there is {work.die_when}")


def content(spark: SparkSession, uri: str) -> Mapping[str, tuple[int, bytes]]:
    """All files of a checkpoint, with the times at which they were written."""
    hadoop = Hadoop.of(spark)
    return {one.uri: (one.mtime_ms, hadoop.read(one.uri)) for one in hadoop.walk(uri)}


@pytest.fixture(scope="module")
def live(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint whose query has ended with a whole batch."""
    folder = tmp_path_factory.mktemp("killed") / "live"
    run(spark, "changelog1", "aggregation", folder.as_uri(), 3)
    clean_end(folder)
    return folder.as_uri()


def redo(spark: SparkSession, work: Work) -> None:
    """The same again, as the user does it."""
    if work.work == "rescale":
        rescale(work.source, work.target, 3, spark=spark)
    else:
        bootstrap(sums, spark.range(100).selectExpr("id as value"), work.target)


def check_begun(spark: SparkSession, work: Work) -> None:
    """It is not a checkpoint, for Spark and for each command of `statestore`. They say so, and how to go on."""
    hadoop, target = Hadoop.of(spark), work.target
    before = content(spark, target)
    with pytest.raises(Exception, match="No content to map due to end-of-input"):
        run(spark, "changelog1", "aggregation", target, 9)
    assert content(spark, target) == before, "Spark has begun nothing"
    with pytest.raises(InvalidInput, match=r"begun at .* is not whole.* one was killed. Delete it \(statestore rm -r"):
        redo(spark, work)
    said = CliRunner().invoke(typer_app, ["verify", target])
    assert said.exit_code in (1, 2)
    assert "metadata is empty" in f"{said.output} {said.exception}"
    assert "and where one was killed" in f"{said.output} {said.exception}".replace("\n", " ")
    with pytest.raises(Exception, match="metadata is empty"):
        rescale(target, f"{target}-2", 5, spark=spark)
    with pytest.raises(Exception, match="metadata is empty"):
        state_difference(target, target, spark=spark)
    assert content(spark, target) == before
    said = CliRunner().invoke(typer_app, ["rm", "-r", target])
    assert said.exit_code == 0, "it is none, so it isn't asked about"
    assert hadoop.status(target) is None


def check_after_kill(spark: SparkSession, work: Work, *, go_on: bool = False) -> None:
    """After any kill the way to the new checkpoint is said, and works."""
    hadoop = Hadoop.of(spark)
    where = hadoop.status(work.target)
    if where is not None and is_begun(HadoopFiles(hadoop, work.target)):
        check_begun(spark, work)
        where = None
    elif where is not None:
        with pytest.raises(InvalidInput, match=r"There is a checkpoint at .* already \(query .*, batch \d+\)"):
            redo(spark, work)
    if where is None and go_on:
        redo(spark, work)
        where = hadoop.status(work.target)
    if where is not None:
        assert verify(work.target, operators=1).findings == ()
        if work.work == "rescale" and "://" in work.source:
            assert state_difference(work.source, work.target, spark=spark).collect() == []
    parent = work.target.rpartition("/")[0]
    strange = [one.uri for one in hadoop.list(parent) if one.uri.startswith(f"{where.uri}-" if where else "-")]
    assert strange == [], "nothing is left beside it"
    hadoop.delete(work.target, recursive=True)


@pytest.mark.crash
@pytest.mark.needs(TABLE[Capability.REWRITES_STATE])
def test_a_kill_while_executors_write(live: str, spark: SparkSession, tmp_path: Path) -> None:
    """Where the driver waits for Spark: in the rewriting of the state, and in the run over the history."""
    target = tmp_path / "new"
    before = content(spark, live)
    killed(Work("rescale", target.as_uri(), live, die_when=str(target / "offsets" / "3")), tmp_path)
    check_after_kill(spark, Work("rescale", target.as_uri(), live), go_on=True)
    assert content(spark, live) == before, "the original is as it was"
    first = target / "history" / "checkpoint" / "offsets" / "0"
    killed(Work("bootstrap", target.as_uri(), die_when=str(first)), tmp_path)
    check_after_kill(spark, Work("bootstrap", target.as_uri()), go_on=True)

    copy = tmp_path / "goes on"
    shutil.copytree(Path(live.removeprefix("file://")), copy)
    run(spark, "changelog1", "aggregation", copy.as_uri(), 5)
    assert verify(copy.as_uri(), operators=1).ok, "and goes on"


def chosen(moments: list[str]) -> list[str]:
    """Return the moments to die at: of calls that are alike, such as the copies of files, the first and the last."""
    kinds: dict[str, list[str]] = {}
    for moment in moments:
        phase, call, path = moment.split(" ", 2)
        kinds.setdefault(f"{phase} {call} {path.split('/')[0]}", []).append(moment)
    return list(dict.fromkeys(moment for kind in kinds.values() for moment in (kind[0], kind[-1])))


@pytest.mark.crash
@pytest.mark.needs(TABLE[Capability.REWRITES_STATE])
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize(("what", "least"), [("rescale", 11), ("rescale a savepoint", 8), ("bootstrap", 11)])
def test_a_kill_at_each_step(what: str, least: int, live: str, spark: SparkSession, bk: str, tmp_path: Path) -> None:
    target, source, name = (tmp_path / "new").as_uri(), live, ""
    if what == "rescale a savepoint":
        target, source, name = f"{bk}/new", f"{bk}/live", f"s{uuid.uuid4().hex[:8]}"
        run(spark, "changelog1", "aggregation", source, 3)
        savepoints.create(name, source, batch_id=2)
    before = content(spark, source)
    work = Work(what.split()[0], target, name or source)
    code, moments = drive(work, tmp_path)
    assert code == 0
    Hadoop.of(spark).delete(target, recursive=True)
    places = chosen(moments)
    assert len(places) >= least
    for place in places:
        killed(replace(work, die=place), tmp_path)
        check_after_kill(spark, work, go_on=place == places[len(places) // 2])
        assert content(spark, source) == before, place
    if name:
        savepoints.delete(name, source)


@pytest.mark.crash
@pytest.mark.needs(TABLE[Capability.REWRITES_STATE])
def test_a_kill_while_what_was_begun_is_removed(live: str, spark: SparkSession, tmp_path: Path) -> None:
    """Without its empty `metadata`, Spark would take what is left for a checkpoint, and go on from it."""
    work = Work("rescale", (tmp_path / "new").as_uri(), live)
    code, moments = drive(replace(work, fails=True), tmp_path)
    assert code == 1
    removals = [moment for moment in moments if re.fullmatch(r"after delete (\.|\w+)", moment)]
    assert removals[-1] == "after delete ."
    assert len(removals) > 3
    for place in removals[:-1]:
        killed(replace(work, die=place, fails=True), tmp_path)
        assert is_begun(HadoopFiles(Hadoop.of(spark), work.target))
        check_after_kill(spark, work)
