"""One local Spark session for each test process, and how tests start drivers that live for a batch or two.

Most of the suite's work would be the starting of those.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pyspark
import pytest
from pyspark.sql import SparkSession

from eos.local.class_archive import spark_flags, submit_environment
from eos.local.jvm import QUICK_START
from statestore import JarMissing, configure_spark, jar_path

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session with two task slots, `bk://` if its jar is built; Python workers can import the tests."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "localhost")
        .config("spark.python.daemon.module", "tests.python_daemon")
        # Of the whole application: its first stateful query sets it, whichever test that is in.
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "1s")
    )
    try:
        builder, flags = configure_spark(builder), quick_start(with_bk=True)
    except JarMissing:
        flags = quick_start()
    with patch.dict(os.environ, flags):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


SPARK = Path(pyspark.__file__).parent


@cache
def quick_start(*, with_bk: bool = False) -> Mapping[str, str]:
    """The environment of a driver that shares its classes with those before it; `with_bk`: one that uses bk://.

    That one brings the jar of bk:// by its own settings. The others get it, too, and don't use it: so there is one
    class path, and one minute of reading classes, for all.
    """
    try:
        jar = [Path(jar_path())]
    except JarMissing:
        jar = []
    flags = spark_flags(SPARK, QUICK_START, jar, tell=print)
    return submit_environment(SPARK, flags, () if with_bk else jar)
