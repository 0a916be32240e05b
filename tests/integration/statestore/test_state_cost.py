"""How many files a batch of a stateful query leaves on `bk://`: the formula of docs/scale.md."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from statestore.hadoop.file_systems import Hadoop
from tests.integration.statestore.jobs import ROCKSDB

pytestmark = pytest.mark.slow

BATCHES = 3
_CHANGE = re.compile(r"/state/0/(\d+)/(?:([\w-]+)/)?(\d+)(?:_[\w-]+)?\.changelog$")


def counted(words: DataFrame) -> DataFrame:
    return words.groupBy("word").agg(F.count("*").alias("n"))


def joined(words: DataFrame) -> DataFrame:
    other = words.select(F.col("word").alias("other"), F.col("at").alias("then"))
    return words.join(other, F.expr("word = other and then between at and at + interval 1 hour"))


@pytest.mark.parametrize(("query", "stores", "partitions"), [(counted, 1, 3), (joined, 4, 2)])
def test_one_changelog_for_each_store_state_partition_and_batch(
    spark: SparkSession, bk: str, tmp_path: Path, query: Any, stores: int, partitions: int
) -> None:
    session = spark.newSession()
    for name, value in {**ROCKSDB, "spark.sql.shuffle.partitions": str(partitions)}.items():
        session.conf.set(name, value)
    given = tmp_path / "input"
    given.mkdir()
    for number in range(BATCHES):
        (given / f"{number}.csv").write_text("".join(f"{word},2026-01-01 00:00:0{number}\n" for word in "abcdef"))
    words = session.readStream.schema("word string, at timestamp").option("maxFilesPerTrigger", 1).csv(str(given))
    running = (
        query(words)
        .writeStream.format("noop")
        .outputMode("append" if stores > 1 else "update")
        .option("checkpointLocation", bk)
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    batches = running.lastProgress["batchId"] + 1
    files = [file.uri for file in Hadoop.of().walk(bk)]
    changes = Counter(match.groups()[:2] for uri in files if (match := _CHANGE.search(uri)))
    assert len(changes) == stores * partitions
    assert set(changes.values()) == {batches}
    for log in ("offsets", "commits"):
        assert sum(f"/{log}/" in uri for uri in files) == batches
