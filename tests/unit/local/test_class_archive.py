"""Drivers share what the first one made of Spark's jars, and start without where that can't be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eos.local import class_archive
from eos.local.class_archive import spark_flags, submit_environment

pytestmark = pytest.mark.jvm  # an archive is named for the Java that reads it

FLAGS = ("-XX:+UseSerialGC",)

# Writes the archive that the environment asks for, as a JVM does when it ends in good order.
TRAINS = """
import os, re
open(re.search("ArchiveClassesAtExit=([^ ']+)", os.environ["PYSPARK_SUBMIT_ARGS"])[1], "w").write("classes")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark with one jar, and an empty cache."""
    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_text("core")
    return tmp_path / "spark"


def train_by(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "TRAINING", (sys.executable, "-c", code))


def archive_of(flags: list[str]) -> Path:
    return Path(flags[-1].removeprefix("-XX:SharedArchiveFile="))


def test_the_second_driver_finds_what_the_first_one_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_by(TRAINS, monkeypatch)
    flags = spark_flags(home, FLAGS)
    assert flags[:-1] == list(FLAGS)
    assert archive_of(flags).read_text() == "classes"
    train_by("raise SystemExit('asked again')", monkeypatch)
    assert spark_flags(home, FLAGS) == flags


def test_other_jars_or_another_collector_need_an_archive_of_their_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_by(TRAINS, monkeypatch)
    seen = {archive_of(spark_flags(home, FLAGS)), archive_of(spark_flags(home, ("-XX:+UseParallelGC",)))}
    more = home.parent / "bk.jar"
    more.write_text("bk")
    seen.add(archive_of(spark_flags(home, FLAGS, [more])))
    (home / "jars" / "core.jar").write_text("another core")
    seen.add(archive_of(spark_flags(home, FLAGS)))
    assert len(seen) == 4


def test_drivers_start_without_where_training_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_by(TRAINS + "raise SystemExit('no memory')", monkeypatch)
    told: list[str] = []
    assert spark_flags(home, FLAGS, tell=told.append) == list(FLAGS)
    assert "no memory" in told[-1]
    assert not list(home.parent.glob("cache/**/*.jsa")), "half an archive is left"


def test_a_broker_takes_what_was_kept_for_its_jars_and_flags(home: Path) -> None:
    assert class_archive.pulsar_flags(FLAGS) == list(FLAGS)
    with class_archive.kept(class_archive.pulsar_archive(FLAGS)) as unfinished:
        unfinished.write_text("classes")
    flags = class_archive.pulsar_flags(FLAGS)
    assert flags[:-1] == list(FLAGS)
    assert archive_of(flags).read_text() == "classes"
    assert class_archive.pulsar_flags(("-XX:+UseParallelGC",)) == ["-XX:+UseParallelGC"]


def test_a_jvm_that_wrote_nothing_leaves_nothing(home: Path) -> None:
    archive = class_archive.pulsar_archive(FLAGS)
    with class_archive.kept(archive):
        pass
    assert list(archive.parent.iterdir()) == []


def test_what_was_written_before_an_error_is_not_kept(home: Path) -> None:
    archive = class_archive.pulsar_archive(FLAGS)
    with pytest.raises(TimeoutError):
        _keep_half(archive)
    assert list(archive.parent.iterdir()) == []


def _keep_half(archive: Path) -> None:
    with class_archive.kept(archive) as unfinished:
        unfinished.write_text("half of the classes")
        raise TimeoutError


def test_a_session_gets_the_flags_and_the_class_path(home: Path) -> None:
    given = submit_environment(home, [*FLAGS, "-Da=b"], [Path("/x/bk.jar")])
    assert given["SPARK_HOME"] == str(home)
    assert given["PYSPARK_SUBMIT_ARGS"] == (
        "--driver-class-path '/x/bk.jar' --driver-java-options '-XX:+UseSerialGC -Da=b' pyspark-shell"
    )
