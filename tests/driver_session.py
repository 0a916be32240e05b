"""The Spark session of a driver that a test starts in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": "2",
}


def driver_session(
    settings: Mapping[str, str] | None = None,
    *,
    master: str = "local[2]",
    bk: Mapping[str, object] | None = None,
    level: str = "ERROR",
) -> SparkSession:
    """Start a small session.

    Args:
        settings: of Spark, besides or in the place of `SMALL`.
        master: Spark's.
        bk: the options of bk://. Default: the session doesn't know it.
        level: of Spark's log.
    """
    builder = SparkSession.builder.master(master)
    for name, value in {**SMALL, **(settings or {})}.items():
        builder = builder.config(name, value)
    if bk is not None:
        from statestore import configure_spark

        builder = configure_spark(builder, options=bk)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(level)
    return session
