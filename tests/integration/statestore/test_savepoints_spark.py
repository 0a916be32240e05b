"""A savepoint of a running stateful query, which goes on and cleans up; it resumes from the restored checkpoint."""

from __future__ import annotations

import uuid
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from statestore import BkAddress, jar_path, savepoints
from statestore.bk import tree
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import pulsar_topic
from tests.integration.statestore.conftest import OwnTree
from tests.waiting import until_batch

pytestmark = pytest.mark.slow

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDERS = {
    "hdfs-backed": {},
    "rocksdb, format 2": {
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    },
}


class Job:
    """A query that counts words, file by file, with its checkpoint in a tree of the test's own."""

    def __init__(self, spark: SparkSession, own_tree: OwnTree, folder: Path, settings: dict[str, str]) -> None:
        self.uri, given = own_tree
        self.options = {
            **given,
            "fs.bk.grace.ms": "0",
            "fs.bk.maintenance.ms": "0",
            "fs.bk.pack.files": "12",  # so that ledgers are rolled, and freed, within the test
        }
        self.spark = spark.newSession()
        cleaning = {
            "spark.sql.streaming.minBatchesToRetain": "2",
            "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
        }
        for name, value in {**self.options, **cleaning, **settings}.items():
            self.spark.conf.set(name, value)
        self.lines = folder / "lines"
        self.lines.mkdir()
        self.files = 0

    def add(self, files: int) -> None:
        for _ in range(files):
            words = [f"word-{number * self.files % 7}" for number in range(20)]
            scratch = self.lines / f".{self.files}"
            scratch.write_text("\n".join(words))
            scratch.rename(self.lines / f"{self.files:04}.txt")
            self.files += 1

    def start(self, checkpoint: str, table: str, **trigger: Any) -> StreamingQuery:
        lines = self.spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(self.lines))
        counts: DataFrame = lines.groupBy(F.col("value").alias("word")).count()
        writer = counts.writeStream.outputMode("complete").format("memory").queryName(table)
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()

    def run(self, checkpoint: str) -> tuple[dict[str, int], StreamingQuery]:
        """Run until there is nothing new, and return the counts."""
        table = f"t{uuid.uuid4().hex}"
        query = self.start(checkpoint, table, availableNow=True)
        query.awaitTermination()
        return {row["word"]: row["count"] for row in self.spark.table(table).collect()}, query

    def expected(self) -> dict[str, int]:
        """The same by hand, over all files."""
        return dict(Counter(word for file in self.lines.glob("[0-9]*") for word in file.read_text().splitlines()))

    def hadoop(self) -> Hadoop:
        return Hadoop.of(None, self.options)


@pytest.mark.parametrize("provider", [pytest.param("hdfs-backed", marks=pytest.mark.soak), "rocksdb, format 2"])
def test_the_query_resumes_from_a_savepoint_taken_while_it_ran(
    provider: str, spark: SparkSession, own_tree: OwnTree, tmp_path: Path, pulsar: Any
) -> None:
    job = Job(spark, own_tree, tmp_path, PROVIDERS[provider])
    source = f"{job.uri}q"
    job.add(7)
    query = job.start(source, f"t{uuid.uuid4().hex}", processingTime="0 seconds")
    until_batch(query, 3)
    made = savepoints.create("running", source, options=job.options)
    topic = f"{pulsar.service_url}/savepoints-{uuid.uuid4().hex[:10]}"
    copied = pulsar_topic.create("copied", source, topic, options=job.options)
    job.add(7)
    query.processAllAvailable()
    progress = query.lastProgress
    assert progress is not None
    last = progress["batchId"]
    query.stop()
    assert 3 <= made.batch_id <= copied.batch_id <= last
    assert made.query == copied.query == str(query.id)
    assert made.batch_id < last - 4, "the query went on, and has cleaned up what the savepoint holds"

    hadoop = job.hadoop()
    assert str(made.batch_id) not in [one.name for one in hadoop.list(f"{source}/commits")]
    hadoop.delete(source, recursive=True)
    freed = hadoop.jvm.eos.bk.Maintenance.sweep(hadoop.file_system(job.uri))
    assert list(freed) != [], "what only the cleaned batches needed"
    ledgers = tree.ledgers(hadoop, BkAddress.parse(job.uri, job.options)).values()
    assert len([ledger for ledger in ledgers if "running" in ledger.savepoints]) == made.ledgers

    job.add(1)
    for target in (f"{job.uri}zero-copy", (tmp_path / "on-disk").as_uri()):
        if target.endswith("zero-copy"):
            savepoints.restore("running", target, options=job.options)
        else:
            pulsar_topic.restore(topic, target, options=job.options)
        counts, resumed = job.run(target)
        assert counts == job.expected()
        assert str(resumed.id) == made.query
        first = resumed.recentProgress[0]["batchId"]
        assert first == (made.batch_id if target.endswith("zero-copy") else copied.batch_id) + 1, (
            "it resumed, not began"
        )

    savepoints.delete("running", job.uri, options=job.options)
    hadoop.jvm.eos.bk.Maintenance.sweep(hadoop.file_system(job.uri))
    job.add(1)
    assert job.run(f"{job.uri}zero-copy")[0] == job.expected(), "it does not need the savepoint any more"


def test_spark_starts_no_query_on_what_is_half_restored(spark: SparkSession, own_tree: OwnTree, tmp_path: Path) -> None:
    job = Job(spark, own_tree, tmp_path, {})
    job.add(2)
    hadoop = job.hadoop()
    hadoop.write(f"{job.uri}half/metadata", b"")
    with pytest.raises(Exception, match=r"No content to map due to end-of-input"):
        job.run(f"{job.uri}half")
    assert [one.name for one in hadoop.list(f"{job.uri}half")] == ["metadata"]


# ---- state on bk://


def write(folder: Path, name: str, words: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(words.split()) + "\n")


@pytest.mark.timeout(1_200)
def test_state_survives_on_bookkeeper(bk: str, run_job: Any, tmp_path: Path) -> None:
    """Each run goes on with the state of the one before: executors with the driver's, and a driver with theirs."""
    files = tmp_path / "files"
    batch = -1
    for master, new, counts in (
        ("local[2]", ("a b a", "a c"), {"a": 3, "b": 1, "c": 1}),
        ("local-cluster[2,1,1024]", ("b c c", "a d"), {"a": 4, "b": 2, "c": 3, "d": 1}),
        ("local[2]", ("d d",), {"a": 4, "b": 2, "c": 3, "d": 3}),
    ):
        for number, words in enumerate(new):
            write(files, f"{batch + 1}-{number}.txt", words)
        answer = run_job("count", master=master, checkpoint=f"{bk}/q", files=str(files))
        assert answer["counts"] == counts, master
        assert answer["batch"] == batch + len(new), "it went on, and did not begin anew"
        batch = answer["batch"]


def test_the_jar_leaves_the_logging_to_spark() -> None:
    with zipfile.ZipFile(jar_path()) as jar:
        names = [name.rpartition("/")[2] for name in jar.namelist()]
    assert not [name for name in names if name.startswith(("log4j", "logback")) and not name.endswith(".class")]
