"""Make a Spark session ready for `bk://` in one call."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eos.config import FILE
from eos.spark.capabilities import require_pyspark
from eos.spark.jar import (
    FILE_SYSTEM,
    driver_has_jar,
    hiding,
    refuse_overriding_arguments,
    settings_before,
    settings_of,
    with_jar,
)
from statestore.errors import InvalidInput, Unavailable, own_errors
from statestore.hadoop.jar import jar_path
from statestore.hadoop.options import PREFIX, checked
from statestore.hadoop.own_jvm import end_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HADOOP = "spark.hadoop."
_SHOWN = "zookeeper-auth"
_STORE_PASSWORD = re.compile(re.escape(f"{PREFIX}zookeeper.") + r"ssl(\.\w+)*\.(keyStore|trustStore)\.password")
"""Of ZooKeeper's Java key stores. ZooKeeper takes a file of each too."""


def configure_spark(builder: Any, *, options: Mapping[str, object] | None = None) -> Any:
    """Add the file system `bk://` to a session that is about to be made.

        spark = configure_spark(SparkSession.builder, options={"fs.bk.ensemble": 3}).getOrCreate()

    This works in local mode and on clusters, since Spark itself carries the jar to the executors. Lists in the builder
    or in `spark-defaults.conf` (`spark.jars`, the extra class paths) stay, and get one more entry. Options given here
    win over `spark.hadoop.fs.bk.…` on the builder.

    Args:
        builder: `SparkSession.builder`, with all other settings of the session.
        options: Hadoop options `fs.bk.…`. `statestore.hadoop.options` has names and defaults.

    Returns:
        The builder.

    Raises:
        InvalidInput: an option is wrong, a secret is given as a text that others could see, or the JVM of the driver
            runs already without the jar, so that it is too late to add it.
        JarMissing: the jar was not built.
    """
    jar = str(jar_path())
    given = checked(options or {})
    with own_errors():
        already = settings_of(builder)
    ours = checked({name.removeprefix(HADOOP): value for name, value in already.items() if _is_ours(name)}) | given
    settings = dict(FILE_SYSTEM)
    settings |= {HADOOP + name: value for name, value in given.items()}
    with own_errors():
        jvm_runs = driver_has_jar()
        if not jvm_runs:
            refuse_overriding_arguments()
            _refuse_to_show(ours)
    before = settings_before(builder, jvm_runs)
    settings |= with_jar(before, jar)
    if PREFIX + _SHOWN in ours or f"{HADOOP}{PREFIX}{_SHOWN}" in before:
        settings |= hiding(before, _SHOWN)
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
        settings: of Spark. Under spark-submit those of its command line count too.

    Raises:
        SparkMissing: there is no PySpark, or it is too old; it says what to install.
        Unavailable: Spark does not start, as with a setting that it or its JVM refuses.
    """
    require_pyspark()
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from eos.spark.query import reason

    found = SparkContext._gateway
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder = configure_spark(builder, options=options)
    with _jvm_on_standard_error():
        try:
            spark: SparkSession = builder.getOrCreate()
        except (Py4JError, PySparkException) as error:
            raise Unavailable(
                f"Spark could not be started: {reason(error).rstrip('.')}. Look at the settings that it was given, "
                "and at what it has written above"
            ) from error
        _ = spark.streams  # makes the coordinator of state stores, to which Spark 4.1 and 4.2 report when state is read
    try:
        yield spark
    finally:
        spark.stop()
        if found is None:
            _end_jvm(SparkContext)


def context_of(spark: SparkSession | None) -> Any:
    """Return the Spark context to go through, or None for an own JVM.

    Args:
        spark: None: the active one, if it knows `bk://`.

    Raises:
        InvalidInput: the session was stopped, does not know `bk://`, or is of Spark Connect.
        Unavailable: PySpark is missing.
    """
    try:
        from pyspark import SparkContext
    except ImportError as error:
        raise Unavailable(
            "Hadoop comes with Spark, and pyspark is not installed here: pip install 'spark-pulsar-eos[spark]', or put "
            "a cluster's own on PYTHONPATH"
        ) from error
    try:
        context: Any = spark.sparkContext if spark is not None else SparkContext._active_spark_context
    except AttributeError as error:
        raise InvalidInput(
            f"spark is {type(spark).__name__}, and not a session of Spark in classic mode (not Spark Connect), whose "
            "JVM is in this process's reach"
        ) from error
    if context is None or context._jvm is None:
        return None
    loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        context._jvm.java.lang.Class.forName(FILE_SYSTEM[f"{HADOOP}fs.bk.impl"], False, loader)
    except Exception as error:
        if spark is None:
            return None
        raise InvalidInput(
            "This Spark session does not know bk://: make it with statestore.configure_spark(SparkSession.builder, …)"
        ) from error
    if context._jsc is None:
        raise InvalidInput("This Spark session was stopped. Give one that runs, or none")
    return context


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


def _refuse_to_show(options: Mapping[str, str]) -> None:
    """PySpark starts the driver's JVM with all settings of the builder as arguments, which every user can list."""
    for name, value in options.items():
        if name == PREFIX + _SHOWN and value and not value.startswith(FILE):
            instead = "say file:PATH"
        elif _STORE_PASSWORD.fullmatch(name):
            instead = f"name it by {name}Path"
        else:
            continue
        raise InvalidInput(
            f"{name} as a text would be seen in the command line of Spark's JVM. Write it into a file that only the "
            f"job's user may read, on the machines of driver and executors, and {instead}"
        )
