"""Write tests/vectors/spark_versions.tar.xz: a small checkpoint in each form that Spark can write.

python -m tests.vectors.spark_versions
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

from statestore.checkpoint import moved_metadata
from tests.integration.statestore.spark_versions import FORMS, session
from tests.soak.queries import run

TARGET = Path(__file__).with_name("spark_versions.tar.xz")
BATCHES = 3


def main() -> None:
    spark = session()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(TARGET, "w:xz") as archive:
        for name, form in FORMS.items():
            run(spark, form.provider, form.query, f"{folder}/{name}", BATCHES, settings=form.settings)
            for file in sorted(Path(folder, name).rglob("*")):
                if file.is_file() and not file.name.startswith("."):
                    path = file.relative_to(folder)
                    data = file.read_bytes()
                    if "v2" in path.parts:
                        data = moved_metadata(data, f"file:/{name}")
                    member = tarfile.TarInfo(str(path))
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
    spark.stop()


if __name__ == "__main__":
    main()
