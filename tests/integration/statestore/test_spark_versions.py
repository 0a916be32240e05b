"""Logs and state in each version that Spark can write: read, copied, compared, rescaled and restored here."""

from __future__ import annotations

import tarfile
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from statestore import InvalidInput, rescale, savepoints, state_difference, verify
from statestore.checkpoint import LocalFiles, committed
from statestore.checkpoint.cut import cut_of
from statestore.checkpoint.inspection import inspect
from statestore.checkpoint.listing import read_snapshots
from statestore.checkpoint.transfer import copy_checkpoint
from statestore.defaults import BATCHES
from statestore.hadoop.file_systems import Hadoop
from tests.integration.statestore.spark_versions import FORMS
from tests.integration.statestore.test_rescaling import KEEP_ALL, clean_end
from tests.soak.queries import run

ARCHIVE = Path(__file__).resolve().parents[2] / "vectors" / "spark_versions.tar.xz"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that Spark wrote once, a folder for each form."""
    folder = tmp_path_factory.mktemp("versions")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def begins(folder: Path, path: str, version: str) -> bool:
    """Whether each file of a log begins with a version."""
    files = list((folder / path).iterdir())
    return bool(files) and all(file.read_text().startswith(f"{version}\n") for file in files)


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_read(name: str, written: Path) -> None:
    files, form = LocalFiles(written / name), FORMS[name]
    assert all(begins(written / name, path, version) for path, version in form.begins.items())
    found = inspect(files, operators=form.operators)
    assert [finding.message for finding in found.findings] == []
    listed = read_snapshots(files)
    assert listed.loadable[-1] == committed(files)[-1]
    assert cut_of(files, "here").batch_id == listed.loadable[-1]


@pytest.mark.parametrize("name", FORMS)
def test_each_form_says_itself_how_many_operators_it_has_if_it_can(name: str, written: Path) -> None:
    """In checkpoint format 2 the commit does, of whatever version it is."""
    answers = {finding.severity for finding in inspect(LocalFiles(written / name)).findings}
    assert answers == (set() if FORMS[name].provider == "changelog2" else {"unknown"})


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FORMS)
def test_spark_goes_on_from_what_is_made_of_each_form(name: str, spark: SparkSession, bk: str, tmp_path: Path) -> None:
    form = FORMS[name]
    settings = {**KEEP_ALL, **form.settings}

    def check(uri: str, batches: int = BATCHES) -> None:
        assert verify(uri, batches, spark=spark, operators=form.operators).findings == ()

    def goes_on(uri: str, until: int) -> None:
        run(spark, form.provider, form.query, uri, until, settings=settings)
        check(uri)

    original = tmp_path / "original"
    source = original.as_uri()
    goes_on(source, 3)
    last = clean_end(original)
    check(source)
    before = state_difference(source, source, spark=spark, batch_a=last - 1, batch_b=last).count()
    assert before > 0
    moved, copied = f"{bk}/moved", (tmp_path / "copied").as_uri()
    for target in (moved, copied):
        copy_checkpoint(Hadoop.of(spark), source, target)
        check(target, 1)  # a copy holds the state of its newest batch; that of earlier ones only by chance
        assert state_difference(source, target, spark=spark).collect() == []
    savepoint, restored = f"s{uuid.uuid4().hex[:8]}", f"{bk}/restored"
    savepoints.create(savepoint, moved, spark=spark)
    try:
        savepoints.restore(savepoint, restored, spark=spark)
    finally:
        savepoints.delete(savepoint, moved)
    for target in (copied, restored):
        goes_on(target, last + 3)
    assert state_difference(copied, restored, spark=spark, batch_a=last + 2, batch_b=last + 2).collect() == []
    rescaled = (tmp_path / "rescaled").as_uri()
    if name.startswith("join-v4"):  # Spark 4.3 names another key than it partitions by
        with pytest.raises(InvalidInput, match="lie in another of 2 partitions"):
            rescale(source, rescaled, 3, spark=spark)
        return
    done = rescale(source, rescaled, 3, spark=spark)
    check(rescaled)
    assert state_difference(source, rescaled, spark=spark).collect() == []
    goes_on(rescaled, done.batch_id + 3)
    later = state_difference(copied, rescaled, spark=spark, batch_a=last + 2, batch_b=done.batch_id + 2)
    assert later.collect() == []
