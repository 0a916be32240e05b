"""What Spark asks of a streaming query's reader without a broker."""

from __future__ import annotations

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import StructType

from eos.source.batch_pace import FIRST_ENTRIES
from eos.source.options import parse_options
from eos.source.stream import PulsarStreamReader


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxEntriesPerTrigger": "5", "maxBytesPerTrigger": "9"}, ReadMaxRows(5)),
        ({"maxBytesPerTrigger": "9"}, ReadMaxBytes(9)),
        ({"targetBatchSeconds": "2"}, ReadMaxRows(FIRST_ENTRIES)),
        ({"targetBatchSeconds": "2", "maxEntriesPerTrigger": "5"}, ReadMaxRows(5)),
    ],
)
def test_spark_is_told_whether_there_is_a_limit(given: dict[str, str], limit: ReadLimit) -> None:
    options = parse_options({"service.url": "pulsar://h:1", "topic": "t", "subscription": "s"} | given, "stream")
    assert PulsarStreamReader(options, StructType()).getDefaultReadLimit() == limit
