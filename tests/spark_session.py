"""One local Spark session for each test process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from statestore import JarMissing, configure_spark
from tests.quick_start import quick_start

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
