"""`configure_spark` on a builder that only remembers: what is added, what is kept, what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

import eos
from eos.spark import jar
from statestore import InvalidInput, JarMissing, Unavailable, configure_spark
from statestore.hadoop import session as spark
from statestore.hadoop.jar import jar_path

JAR = "/somewhere/eos-bk.jar"


class Builder:
    """Like pyspark's, but it makes no session."""

    def __init__(self, **options: str) -> None:
        self._options = {name.replace("__", "."): value for name, value in options.items()}

    def config(self, name: str, value: str) -> Builder:
        self._options[name] = value
        return self


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spark, "jar_path", lambda: Path(JAR))
    monkeypatch.setattr(spark, "driver_has_jar", lambda: False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)


def made(builder: Builder, **more: Any) -> dict[str, str]:
    found: dict[str, str] = configure_spark(builder, **more)._options
    return found


def test_all_that_a_session_needs() -> None:
    assert made(Builder(), options={"fs.bk.ensemble": 2}) == {
        "spark.jars": JAR,
        "spark.driver.extraClassPath": JAR,
        "spark.executor.extraClassPath": JAR,
        "spark.hadoop.fs.bk.impl": "eos.bk.BookKeeperFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.bk.impl": "eos.bk.Bk",
        "spark.hadoop.fs.bk.ensemble": "2",
    }


def test_what_the_builder_has_is_kept() -> None:
    settings = made(Builder(spark__jars="a.jar,b.jar", spark__executor__extraClassPath="/x"))
    assert settings["spark.jars"] == f"a.jar,b.jar,{JAR}"
    assert settings["spark.executor.extraClassPath"] == f"/x{os.pathsep}{JAR}"


def test_twice_is_as_good_as_once() -> None:
    builder = Builder()
    assert dict(made(builder)) == made(builder)


def test_lists_in_spark_defaults_are_carried_over(tmp_path: Path) -> None:
    text = "# ours\n\nspark.jars    a.jar\nspark.driver.extraClassPath=/d\nspark.executor.memory 1g\n"
    (tmp_path / "spark-defaults.conf").write_text(text)
    settings = made(Builder(spark__driver__extraClassPath="/b"))
    assert settings["spark.jars"] == f"a.jar,{JAR}"
    assert settings["spark.driver.extraClassPath"] == f"/b{os.pathsep}{JAR}"


def test_options_on_the_builder_are_checked_too() -> None:
    with pytest.raises(InvalidInput, match=r"Did you mean fs\.bk\.ensemble\?"):
        configure_spark(Builder(spark__hadoop__fs__bk__esemble="1"))
    assert made(Builder(spark__hadoop__fs__bk__ensemble="1"))["spark.hadoop.fs.bk.ensemble"] == "1"
    made(Builder(spark__hadoop__fs__bk__impl="eos.bk.BookKeeperFileSystem"))


@pytest.mark.parametrize(
    "arguments",
    [
        "--jars x.jar pyspark-shell",
        "--conf spark.jars=x.jar pyspark-shell",
        "--driver-class-path /x pyspark-shell",
        "-c spark.executor.extraClassPath=/x pyspark-shell",
    ],
)
def test_submit_arguments_that_would_replace_ours_are_refused(arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    with pytest.raises(InvalidInput, match="Move it to the builder"):
        configure_spark(Builder())


def test_other_submit_arguments_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.enabled=false --verbose pyspark-shell")
    configure_spark(Builder())


def test_spark_does_not_show_the_password_of_zookeeper() -> None:
    secret = {"fs.bk.zookeeper-auth": "file:/x"}
    shown = made(Builder(), options=secret)["spark.redaction.regex"]
    assert re.search(shown, "fs.bk.zookeeper-auth")
    assert all(re.search(shown, f"some.{word}") for word in ("PASSWORD", "access.key", "credential.of.it"))
    mine = made(Builder(spark__redaction__regex="mine"), options=secret)["spark.redaction.regex"]
    assert [bool(re.search(mine, name)) for name in ("mine", "fs.bk.zookeeper-auth", "other")] == [True, True, False]


def test_spark_does_not_show_one_that_its_defaults_hold(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.hadoop.fs.bk.zookeeper-auth digest:me:pw\n")
    assert "zookeeper-auth" in made(Builder())["spark.redaction.regex"]


def test_files_that_hold_the_passwords_of_key_stores_may_be_named() -> None:
    name = "fs.bk.zookeeper.ssl.keyStore.passwordPath"
    assert made(Builder(), options={name: "/run/pw"})[f"spark.hadoop.{name}"] == "/run/pw"


def test_the_defaults_are_read_as_spark_reads_them_in_any_locale(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.app.name Zählung\n", encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from eos.spark.jar import settings_in; "
        "print(ascii(settings_in(Path(sys.argv[1]))))"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", code, str(file)], env={**os.environ, **plain}, capture_output=True, text=True
    )
    assert told.stdout == "{'spark.app.name': 'Z\\xe4hlung'}\n", told.stderr


@pytest.mark.parametrize(
    ("secret", "instead"),
    [
        ({"fs.bk.zookeeper-auth": "digest:me:pa55word"}, "say file:PATH"),
        ({"fs.bk.zookeeper.ssl.keyStore.password": "pa55word"}, r"name it by fs.*\.ssl\.keyStore\.passwordPath$"),
        ({"fs.bk.zookeeper.ssl.trustStore.password": "pa55word"}, r"name it by fs.*\.ssl\.trustStore\.passwordPath$"),
    ],
)
@pytest.mark.parametrize("by", ["options", "builder"])
def test_a_secret_that_the_command_line_would_show_is_refused(
    by: str, secret: dict[str, str], instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = (
        Builder() if by == "options" else Builder(**{f"spark.hadoop.{name}": text for name, text in secret.items()})
    )
    with pytest.raises(InvalidInput, match=rf"seen in the command line of Spark's JVM.*{instead}") as refused:
        configure_spark(builder, options=secret if by == "options" else None)
    assert "pa55word" not in str(refused.value)
    monkeypatch.setattr(spark, "driver_has_jar", lambda: True)  # no command line is made any more
    configure_spark(builder, options=secret if by == "options" else None)


def test_a_missing_jar_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jar, "NAME", "no-such.jar")
    with pytest.raises(JarMissing, match="make jar"):
        jar_path()


class Pair:
    def __init__(self, name: str, value: str) -> None:
        self._1, self._2 = lambda: name, lambda: value


class Jvm:
    """A driver's JVM that has loaded the jar, or has not, and what spark-submit has put into it."""

    def __init__(self, has_jar: bool, submitted: Mapping[str, str] | None = None) -> None:
        self.has_jar, self.submitted = has_jar, submitted or {}
        self.java = self.lang = self.Thread = self.Class = self

    def currentThread(self) -> Jvm:  # noqa: N802
        return self

    def getContextClassLoader(self) -> Jvm:  # noqa: N802
        return self

    def SparkConf(self, load_defaults: bool) -> Jvm:  # noqa: N802
        assert load_defaults, "else the properties of the JVM are not there"
        return self

    def getAll(self) -> list[Pair]:  # noqa: N802
        return [Pair(name, value) for name, value in self.submitted.items()]

    def forName(self, name: str, initialise: bool, loader: Jvm) -> None:  # noqa: N802
        if not self.has_jar:
            raise RuntimeError("ClassNotFoundException")


def running_driver(monkeypatch: pytest.MonkeyPatch, has_jar: bool, submitted: Mapping[str, str] | None = None) -> None:
    from pyspark import SparkContext

    monkeypatch.undo()
    monkeypatch.setattr(spark, "jar_path", lambda: Path(JAR))
    monkeypatch.setattr(SparkContext, "_gateway", object())
    monkeypatch.setattr(SparkContext, "_jvm", Jvm(has_jar, submitted))
    monkeypatch.setattr(SparkContext, "_ensure_initialized", lambda: None)
    monkeypatch.setattr("pyspark.sql.SparkSession._instantiatedSession", None)  # one of another test is of its own JVM


def test_a_driver_that_runs_without_the_jar_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    running_driver(monkeypatch, has_jar=False)
    with pytest.raises(InvalidInput, match=r'spark-submit --jars "\$\(statestore jar\)"'):
        configure_spark(Builder())


def test_a_driver_that_runs_with_the_jar_is_fine_whatever_its_arguments_were(monkeypatch: pytest.MonkeyPatch) -> None:
    running_driver(monkeypatch, has_jar=True)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {JAR} pyspark-shell")
    assert made(Builder())["spark.jars"] == JAR


SUBMITTED = {
    "spark.jars": f"file://{JAR},file:///job/postgresql.jar",
    "spark.driver.extraClassPath": f"{JAR}{os.pathsep}/job/mine.jar",
    "spark.executor.extraClassPath": "/opt/hadoop-aws.jar",
    "spark.redaction.regex": "(?i)secret|vaultid",
    "spark.hadoop.fs.bk.zookeeper-auth": "file:/x",
}


@pytest.mark.parametrize("call", [configure_spark, partial(eos.configure_spark, service_url="pulsar://h:6650")])
def test_what_the_command_line_of_spark_submit_says_is_kept(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is set on the builder replaces it."""
    running_driver(monkeypatch, has_jar=True, submitted=SUBMITTED)
    monkeypatch.setattr("eos.by_name.session.shipped_jar", lambda: Path(JAR))
    settings = call(Builder())._options
    assert settings["spark.jars"] == SUBMITTED["spark.jars"]
    assert settings["spark.driver.extraClassPath"] == SUBMITTED["spark.driver.extraClassPath"]
    assert settings["spark.executor.extraClassPath"] == f"/opt/hadoop-aws.jar{os.pathsep}{JAR}"
    assert settings["spark.redaction.regex"].startswith("(?i)secret|vaultid|")
    settings = call(Builder(**{"spark.jars": "a.jar"}))._options
    assert settings["spark.jars"] == f"a.jar,{JAR}", "the builder wins over the command line, as without this call"


def test_what_a_new_jvm_says_does_not_come_between_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Talking(Builder):
        stopped = False
        streams = None

        def getOrCreate(self) -> Talking:  # noqa: N802
            os.write(1, b"WARN of the JVM\n")
            return self

        def stop(self) -> None:
            self.stopped = True

    builder = Talking()
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", builder)
    with spark.session({}, {"spark.app.name": "x"}) as made_session:
        print("{}", flush=True)
        assert cast(object, made_session) is builder
        assert made(builder)["spark.app.name"] == "x"
    assert builder.stopped
    assert capfd.readouterr() == ("{}\n", "WARN of the JVM\n")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PySparkRuntimeError("Java gateway process exited"), "Java gateway process exited"),
        (Py4JError("Could not parse Master URL: 'nonsense'"), "Could not parse Master URL: 'nonsense'"),
    ],
)
def test_a_spark_that_does_not_start_is_told_in_words(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(Builder):
        def getOrCreate(self) -> None:  # noqa: N802
            raise error

    monkeypatch.setattr("pyspark.sql.SparkSession.builder", Refusing())
    with (
        pytest.raises(Unavailable, match=f"^Spark could not be started: {says}. Look at the settings"),
        spark.session({}, {"spark.master": "nonsense"}),
    ):
        pytest.fail("the block was begun")


@dataclass
class Gateway:
    """Of a JVM that ends as its standard input does, or that PySpark has not started."""

    proc: subprocess.Popen[bytes] | None
    closed: bool = False

    def close(self) -> None:
        assert self.proc is not None
        assert self.proc.poll() is not None, "a thread that waits for a call of the JVM would not let it be closed"
        self.closed = True


@pytest.mark.parametrize("began", ["before the block", "in the block", "by spark-submit"])
def test_the_jvm_that_a_session_has_begun_ends_with_it(monkeypatch: pytest.MonkeyPatch, began: str) -> None:
    from pyspark import SparkContext

    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    gateway = Gateway(None if began == "by spark-submit" else process)

    class Makes(Builder):
        streams = None

        def getOrCreate(self) -> Makes:  # noqa: N802
            monkeypatch.setattr(SparkContext, "_gateway", gateway)
            return self

        def stop(self) -> None:
            assert process.poll() is None

    running_driver(monkeypatch, has_jar=True)
    monkeypatch.setattr(SparkContext, "_gateway", gateway if began == "before the block" else None)
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", Makes())
    with spark.session({}, {}):
        pass
    ended = process.poll() is not None
    process.kill()
    process.communicate()
    assert (ended, gateway.closed) == ((True, True) if began == "in the block" else (False, False))
    assert (SparkContext._gateway is None) == ended
