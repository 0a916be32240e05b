"""The rows that every contender writes, and the Spark session that they come from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import statestore

KEYS = 10_000
"""Distinct keys, spread evenly over the rows."""


@dataclass(frozen=True)
class Case:
    """One kind of rows.

    Attributes:
        name: its name in the results.
        shortest, longest: bytes of a value; lengths are spread evenly between them.
    """

    name: str
    shortest: int
    longest: int


FIXED = Case("values_100_bytes", 100, 100)
RANDOM = Case("values_50_to_300_bytes", 50, 300)


@contextmanager
def spark_session(settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session on two cores, with Spark's defaults but for the heap, for the time of the block.

    With `settings` it has these too, and knows `bk://`.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
        "spark.driver.host": "localhost",
    }
    for name, value in (options | dict(settings or {})).items():
        builder = builder.config(name, value)
    if settings is not None:
        builder = statestore.configure_spark(builder)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def make_rows(session: SparkSession, case: Case, rows: int) -> DataFrame:
    """Rows with a key and a value, both binary; the same ones whenever and wherever they are computed."""
    number = F.col("id")
    text = F.concat(*[F.sha2(F.concat_ws("-", number, F.lit(part)), 512) for part in range(-(-case.longest // 128))])
    return session.range(rows).select(
        F.concat(F.lit("key-"), number % KEYS).cast("binary").alias("key"),
        F.substring(text, 1, _length(case)).cast("binary").alias("value"),
    )


@contextmanager
def cached(df: DataFrame) -> Iterator[DataFrame]:
    """The same rows, computed and in memory, for the time of the block."""
    held = df.persist()
    held.count()
    try:
        yield held
    finally:
        held.unpersist(blocking=True)


def _length(case: Case) -> Column:
    spread = case.longest - case.shortest + 1
    return (F.lit(case.shortest) + F.pmod(F.xxhash64("id"), F.lit(spread))).cast("int")
