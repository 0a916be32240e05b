"""What the sink's tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.sinks.bad_input import World

InWorld = Callable[[str], World]


@pytest.fixture
def in_world(spark: SparkSession, pulsar: Any, tmp_path: Path) -> InWorld:
    """Make sinks and rows for a topic: `in_world(topic).sink(value_format="avro")`."""
    return lambda topic: World(spark, pulsar.service_url, pulsar.admin_url, topic, tmp_path)
