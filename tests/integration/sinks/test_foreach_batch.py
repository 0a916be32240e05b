"""However people write the function of `foreachBatch`: all rows are there once, or the query ends and says why."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.crash.job import Job, prepare, start
from tests.integration.sinks import ways_of_frames, ways_of_sinks, ways_with_errors  # noqa: F401  each adds its own
from tests.integration.sinks.ways import WAYS, Batch, Use, Way
from tests.reading import values_of

FILES, ROWS = 3, 2
BATCHES = [{str(row) for row in range(number * ROWS, (number + 1) * ROWS)} for number in range(FILES + 1)]


@pytest.fixture
def use(spark: SparkSession, pulsar: Any, make_topic: Any) -> Use:
    return Use(spark, pulsar.service_url, make_topic("ways"))


@pytest.fixture
def job(use: Use, tmp_path: Path) -> Job:
    return prepare(use.service_url, use.topic, tmp_path, FILES, ROWS)


def run(use: Use, job: Job, batch: Batch) -> str:
    """Run the query over what it has not read yet; return why it failed, "" if it did not."""
    query = start(use.spark, job, batch)
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return str(error)
    return ""


def add_a_file(job: Job) -> None:
    path = job.input / "more.csv"
    path.write_text("".join(f"{row},k\n" for row in sorted(BATCHES[FILES], key=int)))


def whole_batches(use: Use) -> list[int]:
    """Return which batches the topic holds; each is whole, and no row is there twice."""
    found = Counter(values_of(use.service_url, use.topic))
    assert set(found.values()) <= {1}, f"rows are doubled: {found}"
    batches = [number for number, rows in enumerate(BATCHES) if rows & found.keys()]
    assert found.keys() == {row for number in batches for row in BATCHES[number]}, f"a batch is torn: {found}"
    return batches


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_all_rows_are_there_once_or_the_query_says_why_not(use: Use, job: Job, way: Way) -> None:
    first = run(use, job, way.make(use))
    add_a_file(job)
    again = run(use, job, way.make(use))
    if not way.says:
        assert (first, again) in (("", ""), (first, "")), again
        assert not first or "something of the user's own" in first, first
        assert whole_batches(use) == list(range(FILES + 1))
        return
    assert re.search(way.says, first or again), f"{first}\n{again}"
    assert again, "the second run went on as if nothing had happened"
    found = Counter(values_of(use.service_url, use.topic))
    assert set(found.values()) <= {1}, f"rows are doubled: {found}"
    batches = [number for number, rows in enumerate(BATCHES) if rows & found.keys()]
    assert batches == list(range(len(batches))), f"a hole: only batches {batches} are there"
