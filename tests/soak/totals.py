"""A stateful query in Python, by transformWithStateInPandas: apart, since Spark 3.5 has no such thing to import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import LongType, StructField, StructType


class Totals(StatefulProcessor):
    """Adds up a key's values, and remembers each batch's total in a list and its number of rows in a map."""

    def init(self, handle: Any) -> None:
        number = StructType([StructField("n", LongType())])
        self.total = handle.getValueState("total", number)
        self.totals = handle.getListState("totals", number)
        self.sizes = handle.getMapState("sizes", number, number)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame] | Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        frames = cast(Iterator[pd.DataFrame], rows)  # as transformWithStateInPandas gives them
        values = [int(value) for batch in frames for value in batch["value"]]
        total = sum(values) + (self.total.get()[0] if self.total.exists() else 0)
        self.total.update((total,))
        self.totals.appendValue((total,))
        self.sizes.updateValue((values[0],), (len(values),))
        yield pd.DataFrame({"k": [int(key[0])], "total": [total]})

    def close(self) -> None:
        pass
