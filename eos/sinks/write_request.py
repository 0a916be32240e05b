"""The rows that a call of the sink was asked to write, and whether a later call for the same batch writes them.

User code may swallow the error of a call and call again, with the same rows or with others. After the second call the
log has the batch, and rows that only the first call was given would be missing without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from eos.errors import InvalidInput
from eos.sinks.options import SinkOptions
from eos.spark.query import JVM_GONE
from eos.steps import unobserved


class WriteRequest(NamedTuple):
    """A DataFrame as the caller gave it.

    Attributes:
        df: the DataFrame; anything where the caller gave something else.
        topic: of rows that name none.
        options: of the sink.
    """

    df: DataFrame
    topic: str | None
    options: SinkOptions

    def writes_the_same_as(self, other: WriteRequest) -> bool:
        """Tell whether both write the same rows in the same way; False where Spark does not see it."""
        mine, its = (replace(one.options, metrics=None, observer=unobserved) for one in (self, other))
        if (self.topic, mine) != (other.topic, its):
            return False
        if self.df is other.df:
            return True
        try:
            return bool(self.df.sameSemantics(other.df))
        except (AttributeError, PySparkException, *JVM_GONE):
            # Not a DataFrame, or Spark cannot analyze one: nothing is known of its rows.
            return False


def differ(calls: Sequence[Sequence[WriteRequest]]) -> bool:
    """Tell whether calls were asked for different rows. One that did not come to ask for any does not count."""
    asked = [call for call in calls if call]
    return any(lacks_rows(asked[0], other) or lacks_rows(other, asked[0]) for other in asked[1:])


def refuse_other_rows(batch_id: int, failed: Sequence[WriteRequest], requests: Sequence[WriteRequest]) -> None:
    """Refuse a call that leaves out rows of one that failed for the same batch. Raises InvalidInput."""
    if lacks_rows(requests, failed):
        raise InvalidInput(
            f"Nothing of batch {batch_id} is written. An earlier call of the sink for the batch failed in this run "
            "of the query, its error did not leave foreachBatch, and this call does not hold the same rows. The "
            "rows of the earlier call would be missing. Put both writes into one `with sink.batch(batch_id) as "
            "txn:`. To write other columns or another topic instead, ask sink.check(df) before you call the sink."
        )


def lacks_rows(requests: Sequence[WriteRequest], others: Sequence[WriteRequest]) -> bool:
    """Tell whether requests lack one of the others."""
    left = list(requests)
    for one in others:
        found = next((place for place, request in enumerate(left) if request.writes_the_same_as(one)), None)
        if found is None:
            return True
        del left[found]
    return False
