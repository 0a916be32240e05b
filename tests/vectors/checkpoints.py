"""Write tests/vectors/checkpoints.tar.xz: what Spark leaves on disk, for tests that need no JVM.

python -m tests.vectors.checkpoints
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from statestore.checkpoint import moved_metadata
from tests.soak.queries import SESSION, run

TARGET = Path(__file__).with_name("checkpoints.tar.xz")
KEPT = ("hdfs-aggregation", "rocksdb-deduplication", "changelog1-transform", "changelog2-join", "changelog2-transform")
BATCHES = 8


def add(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    """Put a checkpoint into an archive, with names in its metadata that are not those of this machine."""
    for file in sorted((folder / name).rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            path = file.relative_to(folder)
            data = file.read_bytes()
            if "v2" in path.parts:
                data = moved_metadata(data, f"file:/{name}")
            member = tarfile.TarInfo(str(path))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in SESSION.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(TARGET, "w:xz") as archive:
        for name in KEPT:
            provider, query = name.split("-")
            run(spark, provider, query, f"{folder}/{name}", BATCHES)
            add(archive, Path(folder), name)
    spark.stop()


if __name__ == "__main__":
    main()
