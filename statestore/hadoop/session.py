"""Make a Spark session ready for `bk://` in one call."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eos.spark.capabilities import require_pyspark
from statestore.errors import InvalidInput
from statestore.hadoop.jar import jar_path
from statestore.hadoop.options import PREFIX, checked
from statestore.hadoop.own_jvm import end_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HADOOP = "spark.hadoop."
FILE_SYSTEM = {
    "spark.hadoop.fs.bk.impl": "eos.bk.BookKeeperFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.bk.impl": "eos.bk.Bk",
}
# What each setting separates its parts with. spark.jars brings the jar to the executors of any cluster; the class
# paths make it one class for the whole JVM, however many class loaders Spark makes for sessions and artifacts.
_LISTS = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executor.extraClassPath": os.pathsep,
}
_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")
_REDACTION = "spark.redaction.regex"
# Spark's default, and the one option of ours that may hold a password without saying so in its name.
_SECRETS = "(?i)secret|password|token|access[.]?key"
_SHOWN = "zookeeper-auth"


def configure_spark(builder: Any, options: Mapping[str, object] | None = None) -> Any:
    """Add the file system `bk://` to a session that is about to be made.

        spark = configure_spark(SparkSession.builder, {"fs.bk.ensemble": 3}).getOrCreate()

    For local mode and for clusters: Spark itself carries the jar to the executors. Lists that the builder or
    `spark-defaults.conf` hold already (`spark.jars`, the extra class paths) are kept and appended to. Options given
    here win over `spark.hadoop.fs.bk.…` on the builder.

    Args:
        builder: `SparkSession.builder`, with whatever else is wanted of the session.
        options: Hadoop options `fs.bk.…`; see `statestore.hadoop.options` for names and defaults.

    Returns:
        The builder.

    Raises:
        InvalidInput: an option is wrong; a secret is given as a text, where others could see it; or the JVM of the
            driver runs already without the jar, so that it can't be added any more.
        JarMissing: the jar was not built.
    """
    jar = str(jar_path())
    given = checked(options or {})
    already = {name: str(value) for name, value in builder._options.items()}
    ours = checked({name.removeprefix(HADOOP): value for name, value in already.items() if _is_ours(name)}) | given
    settings = dict(FILE_SYSTEM)
    settings |= {HADOOP + name: value for name, value in given.items()}
    defaults = _defaults()
    if not _driver_has_jar():
        _refuse_overriding_arguments()
        _refuse_to_show(ours.get(PREFIX + _SHOWN, ""))
    for name, separator in _LISTS.items():
        settings[name] = _appended(already.get(name, defaults.get(name, "")), jar, separator)
    redacted = already.get(_REDACTION, defaults.get(_REDACTION, _SECRETS))
    if (PREFIX + _SHOWN in ours or f"{HADOOP}{PREFIX}{_SHOWN}" in defaults) and _SHOWN not in redacted:
        settings[_REDACTION] = f"{redacted}|{_SHOWN}"
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


@contextmanager
def session(options: Mapping[str, object], settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Make a Spark session that knows `bk://`, and stop it at the end of the block, with the JVM that it has begun.

    A JVM that is left to end with this process looks meanwhile for ZooKeepers and bookies that are stopped after the
    block, as those of a drill are, and prints a stack trace for each.

    Args:
        options: as of `configure_spark`.
        settings: of Spark; under spark-submit those that it was told count too.

    Raises:
        SparkMissing: there is no PySpark, or it is too old; it says what to install.
    """
    require_pyspark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    found = SparkContext._gateway
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder = configure_spark(builder, options)
    with _jvm_on_standard_error():
        spark: SparkSession = builder.getOrCreate()
        _ = spark.streams  # makes the coordinator of state stores, to which Spark 4.1 and 4.2 report when state is read
    try:
        yield spark
    finally:
        spark.stop()
        if found is None:
            _end_jvm(SparkContext)


def _end_jvm(context: Any) -> None:
    """End the JVM of PySpark. One that PySpark has not started goes on."""
    gateway = context._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    context._gateway = context._jvm = None
    end_jvm(gateway, process)


@contextmanager
def _jvm_on_standard_error() -> Iterator[None]:
    """A JVM that is started in the block logs to standard error: standard output is for what was asked for."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)


def _is_ours(name: str) -> bool:
    return name.startswith(HADOOP + PREFIX) and name not in FILE_SYSTEM


def _appended(parts: str, jar: str, separator: str) -> str:
    listed = [part for part in parts.split(separator) if part]
    return separator.join(listed if jar in listed else [*listed, jar])


def _driver_has_jar() -> bool:
    """Whether the driver's JVM runs already, with the jar; one that runs without it is refused."""
    from pyspark import SparkContext

    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        return False
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(FILE_SYSTEM["spark.hadoop.fs.bk.impl"], False, loader)
    except Exception as error:
        raise InvalidInput(
            "The JVM of the Spark driver runs already, without the jar of bk://, and can't load it any more. Call "
            "configure_spark before the first session of this process is made; under spark-submit give it the jar: "
            'spark-submit --jars "$(statestore jar)" --driver-class-path "$(statestore jar)" …'
        ) from error
    return True


def _refuse_overriding_arguments() -> None:
    """PYSPARK_SUBMIT_ARGS wins over the builder: what it says of these lists would silently replace ours."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--jars")
    parser.add_argument("--driver-class-path")
    parser.add_argument("--conf", "-c", action="append", default=[])
    found, _ = parser.parse_known_args(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    named = {"spark.jars": found.jars, "spark.driver.extraClassPath": found.driver_class_path}
    named |= {text.partition("=")[0]: text for text in found.conf}
    for name in _LISTS:
        if named.get(name):
            raise InvalidInput(
                f"PYSPARK_SUBMIT_ARGS sets {name}, which would replace what configure_spark adds. Move it to the "
                f'builder: SparkSession.builder.config("{name}", …)'
            )


def _refuse_to_show(auth: str) -> None:
    """PySpark starts the driver's JVM with all settings of the builder as arguments, which every user can list."""
    if auth and not auth.startswith("file:"):
        raise InvalidInput(
            f"{PREFIX}{_SHOWN} as a text would be seen in the command line of Spark's JVM. Write it into a file that "
            f"only the job's user may read, on the machines of driver and executors, and say file:PATH"
        )


def _defaults() -> dict[str, str]:
    """What `spark-defaults.conf` says; a builder's setting replaces it, so lists there must be carried over."""
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or str(Path(_find_spark_home(), "conf"))
    file = Path(folder, "spark-defaults.conf")
    return settings_in(file) if file.is_file() else {}


def settings_in(file: Path) -> dict[str, str]:
    """Read a file such as `spark-defaults.conf`. Raises OSError, UnicodeDecodeError."""
    found = {}
    for line in file.read_text().splitlines():
        name, *value = _SEPARATOR.split(line.strip(), maxsplit=1)
        if name and not name.startswith("#"):
            found[name] = "".join(value)
    return found
