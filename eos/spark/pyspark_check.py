"""Whether there is a PySpark, and one that is new enough: asked before anything imports it."""

from __future__ import annotations

from eos.errors import InvalidInput
from eos.spark.capabilities import OLDEST, installed, minor


class SparkMissing(InvalidInput, ImportError):
    """There is no PySpark for this Python, or it is too old."""


def require_pyspark() -> None:
    """Return if PySpark can be imported and is new enough; nothing of it is imported yet.

    Raises:
        SparkMissing: it says what to install.
    """
    wanted = ".".join(map(str, OLDEST))
    found = installed()
    if found is None:
        raise SparkMissing(
            f"eos needs PySpark {wanted} or newer, and this Python has none. Install it with "
            'pip install "spark-pulsar-eos[spark]", or put the python folder of your Spark on PYTHONPATH.'
        )
    if minor(found) < OLDEST:
        raise SparkMissing(
            f"eos needs PySpark {wanted} or newer, and this Python has {found or 'an unknown one'}. "
            'Use a newer Spark, or install one with pip install "spark-pulsar-eos[spark]".'
        )
