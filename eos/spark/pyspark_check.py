"""Whether there is a PySpark, and one that is new enough: asked before anything imports it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from eos.errors import InvalidInput

OLDEST = (4, 0)
"""Spark 4.0 brought `DataFrame.toArrow` and `pyspark.sql.classic`."""


class SparkMissing(InvalidInput, ImportError):
    """There is no PySpark for this Python, or it is too old."""


def require_pyspark() -> None:
    """Return if PySpark can be imported and is new enough; nothing of it is imported yet.

    Raises:
        SparkMissing: it says what to install.
    """
    wanted = ".".join(map(str, OLDEST))
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SparkMissing(
            f"eos needs PySpark {wanted} or newer, and this Python has none. Install it with "
            'pip install "spark-pulsar-eos[spark]", or put the python folder of your Spark on PYTHONPATH.'
        )
    # By its loader: under spark-submit PySpark is in a zip.
    text = cast(Any, spec.loader).get_data(str(Path(spec.submodule_search_locations[0], "version.py"))).decode()
    found = re.search(r"(\d+)\.(\d+)[\w.]*", text[text.index("__version__") :])
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise SparkMissing(
            f"eos needs PySpark {wanted} or newer, and this Python has {found[0] if found else 'an unknown one'}. "
            'Use a newer Spark, or install one with pip install "spark-pulsar-eos[spark]".'
        )
