"""Spark goes on writing the log of a file source in a copied checkpoint as it did in the first one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from statestore.checkpoint import transfer
from statestore.hadoop.file_systems import Hadoop

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
