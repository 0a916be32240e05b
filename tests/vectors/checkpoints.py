"""Write checkpoints.tar.xz and spark_versions.tar.xz: what Spark leaves on disk, for tests that need no JVM.

python -m tests.vectors.checkpoints
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from statestore.checkpoint import moved_metadata
from tests.integration.statestore.spark_versions import FORMS, Form, session
from tests.soak.queries import run

HERE = Path(__file__).parent
KEPT = (
    ("hdfs", "aggregation"),
    ("rocksdb", "deduplication"),
    ("changelog1", "transform"),
    ("changelog2", "join"),
    ("changelog2", "transform"),
)


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


def write(spark: SparkSession, target: str, forms: Mapping[str, Form], batches: int) -> None:
    """Write an archive with a checkpoint of each form, after so many batches."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(HERE / target, "w:xz") as archive:
        for name, form in forms.items():
            run(spark, form.provider, form.query, f"{folder}/{name}", batches, settings=form.settings)
            add(archive, Path(folder), name)


def main() -> None:
    spark = session()
    write(spark, "checkpoints.tar.xz", {f"{provider}-{query}": Form(provider, query) for provider, query in KEPT}, 8)
    write(spark, "spark_versions.tar.xz", FORMS, 3)
    spark.stop()


if __name__ == "__main__":
    main()
