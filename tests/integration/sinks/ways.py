"""Ways in which people write the function of `foreachBatch`: what each must come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import eos

Batch = Callable[[DataFrame, int], Any]
BAD = "value", "value kee"
"""Columns that no sink takes."""


@dataclass(frozen=True)
class Use:
    """The input of a way: how to make its sink, and the session."""

    spark: SparkSession
    service_url: str
    topic: str

    @property
    def name(self) -> str:
        return self.topic.rpartition("/")[2]

    def sink(self, name: str | None = None, **options: Any) -> eos.Sink:
        return eos.sink(self.service_url, topic=self.topic, name=name or self.name, **options)


@dataclass(frozen=True)
class Way:
    """One way.

    Attributes:
        make: makes the function.
        says: what its error must say, "" where all rows must be there.
        soak: whether only `make soak` tries it, since another way of its kind is tried each time.
    """

    make: Callable[[Use], Batch]
    says: str = ""
    soak: bool = False


WAYS: dict[str, Way] = {}


def way(says: str = "", *, soak: bool = False) -> Callable[[Callable[[Use], Batch]], Callable[[Use], Batch]]:
    def add(make: Callable[[Use], Batch]) -> Callable[[Use], Batch]:
        WAYS[make.__name__] = Way(make, says, soak)
        return make

    return add


Call = Callable[[eos.Sink, DataFrame, int], object]


def sink_way(says: str = "", *, soak: bool = False) -> Callable[[Call], Call]:
    """A way whose function has one sink, which was made before the query: see `way`."""

    def add(call: Call) -> Call:
        def make(use: Use) -> Batch:
            sink = use.sink()
            return lambda df, batch_id: call(sink, df, batch_id)

        WAYS[call.__name__] = Way(make, says, soak)
        return call

    return add


ONE_BLOCK = r"Put both writes into one `with sink\.batch\(batch_id\) as txn:`"
HOLE = r"batch \d failed|Batch \d failed"
IN_THE_THREAD = "not called in the thread in which Spark runs the function of foreachBatch"
IDENTITY = r"was given identity= in foreachBatch"
WRONG_ID = r"called with batch_id=\d+, and Spark runs batch \d+ of the query"


def halves(df: DataFrame) -> tuple[DataFrame, DataFrame]:
    return df.filter("cast(value as int) % 2 = 0"), df.filter("cast(value as int) % 2 = 1")
