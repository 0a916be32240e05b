"""Write tests/vectors/spark_versions.tar.xz: a small checkpoint in each form that Spark can write.

python -m tests.vectors.spark_versions
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from tests.integration.statestore.spark_versions import FORMS, session
from tests.soak.queries import run
from tests.vectors.checkpoints import add

TARGET = Path(__file__).with_name("spark_versions.tar.xz")
BATCHES = 3


def main() -> None:
    spark = session()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(TARGET, "w:xz") as archive:
        for name, form in FORMS.items():
            run(spark, form.provider, form.query, f"{folder}/{name}", BATCHES, settings=form.settings)
            add(archive, Path(folder), name)
    spark.stop()


if __name__ == "__main__":
    main()
