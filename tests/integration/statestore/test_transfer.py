"""A checkpoint is copied under a running query that cleans up in haste; the copy goes on to the same result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from statestore.checkpoint import LocalFiles, batch_ids, committed, transfer
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.inspection import inspect
from statestore.hadoop.file_systems import Hadoop
from tests.child_process import ChildProcess

WORDS = ("state", "is", "what", "a", "query", "knows", "of", "the", "rows", "it", "has", "seen")


class Feeder:
    """Files of words for a query; each is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.files = 0
        folder.mkdir()

    def feed(self) -> None:
        words = [WORDS[(self.files * 7 + place) % len(WORDS)] for place in range(self.files % 5 + 1)]
        scratch = self.folder.parent / "scratch"
        scratch.write_text("\n".join(words) + "\n")
        self.counts.update(words)
        scratch.rename(self.folder / f"{self.files:04d}.txt")
        self.files += 1


def feed_until_committed(feeder: Feeder, process: ChildProcess, hadoop: Hadoop, uri: str, batch: int) -> None:
    """Keep the query a few files ahead: each is a batch."""

    def reached() -> bool:
        done = max(committed(HadoopFiles(hadoop, uri)), default=-1)
        if feeder.files < done + 4:
            feeder.feed()
        return done >= batch

    process.until(reached, f"no batch {batch} in time")


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("provider", "scheme"), [("hdfs", "bk"), pytest.param("rocksdb", "file", marks=pytest.mark.soak)]
)
def test_the_copy_of_a_running_query_goes_on_to_the_same_result(
    provider: str, scheme: str, bk: str, start_job: Any, run_job: Any, tmp_path: Path
) -> None:
    hadoop = Hadoop.of()
    feeder = Feeder(tmp_path / "files")
    stop = tmp_path / "stop"
    process = start_job("count", checkpoint=f"{bk}/q", files=str(feeder.folder), provider=provider, until=str(stop))
    feed_until_committed(feeder, process, hadoop, f"{bk}/q", 8)
    target = f"{bk}/copy" if scheme == "bk" else f"file://{tmp_path}/copy"
    told: list[tuple[int, int, int]] = []
    copied = transfer.copy_checkpoint(hadoop, f"{bk}/q", target, lambda *now: told.append(now))
    feed_until_committed(feeder, process, hadoop, f"{bk}/q", copied.batch_id + 2)
    stop.touch()
    whole = process.answer()["counts"]
    assert whole == feeder.counts

    files = HadoopFiles(hadoop, target)
    assert committed(files)[-1] == max(batch_ids(files, "offsets")) == copied.batch_id >= 8
    assert told[-1][2] <= copied.bytes
    if scheme == "file":
        report = inspect(LocalFiles(tmp_path / "copy"), 1)
        assert not [finding for finding in report.findings if finding.severity == "error"]
    again = run_job("count", checkpoint=target, files=str(feeder.folder), provider=provider)
    assert again["counts"] == whole
    assert again["batch"] > copied.batch_id


# ---- the log of a file source


INTERVAL = 3


def run(spark: Any, files: Path, checkpoint: Path, batches: range) -> None:
    """Let a query of one file a batch take these files, which are there when it starts."""
    for number in batches:
        (files / f"{number:02d}.txt").write_text("row\n")
    source = spark.readStream.option("maxFilesPerTrigger", 1).text(str(files))
    writer = source.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)


def test_a_copy_compacts_when_the_original_would_have(spark: Any, tmp_path: Path) -> None:
    files, original, copy = tmp_path / "files", tmp_path / "original", tmp_path / "copy"
    files.mkdir()
    spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", INTERVAL)
    try:
        run(spark, files, original, range(7))
        transfer.copy_checkpoint(Hadoop.of(spark), f"file://{original}", f"file://{copy}")
        log = copy / "sources" / "0"
        assert {path.name for path in log.iterdir() if path.name[0] != "."} == {"2.compact", "5.compact", "6"}
        # Of 5.compact alone Spark concludes an interval of 6, and the next copy of that could not be started.
        run(spark, files, copy, range(7, 10))
        assert (log / "8.compact").exists()
    finally:
        spark.conf.unset("spark.sql.streaming.fileSource.log.compactInterval")
