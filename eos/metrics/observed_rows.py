"""Counts the rows of a source in Spark, for its progress: what tasks have read, which the source itself cannot report.

Spark takes no figures from the tasks of a Python data source, but it counts rows (`DataFrame.observe`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from eos.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress

NAME: Final = "eos.source"
"""The name of what is observed, in `observedMetrics` of Spark's progress."""

_DAMAGED, _BYTES = "damaged", "value_bytes"


@dataclass(frozen=True, slots=True)
class ObservedRows:
    """Figures of the rows of a micro-batch that Spark has read.

    Attributes:
        damaged: rows that say why an entry or a message cannot be read.
        value_bytes: bytes of the column `value`.
    """

    damaged: int = 0
    value_bytes: int = 0


def observe(rows: DataFrame, name: str = NAME) -> DataFrame:
    """Return the rows of a source, which Spark counts while it reads them. `PrometheusMetrics` then has the figures.

    Observe the rows as the source gives them, before any other step. Rows of the column `__damage` are counted where
    the read has it, and bytes of the column `value` where it is binary or a string. A row counts each time that Spark
    reads it. So persist a micro-batch that a batch function uses twice.

    Args:
        rows: of `spark.readStream.format("pulsar")`.
        name: of what is observed. Default: "eos.source". A second source of one query needs another one that begins
            with "eos.source.", such as "eos.source.delays".

    Raises InvalidInput for rows that have neither column, and for another name.
    """
    from pyspark.sql import functions as F

    if name != NAME and not name.startswith(f"{NAME}."):
        raise InvalidInput(f'observe(name={name!r}): the name must be "{NAME}", or begin with "{NAME}.".')
    types = dict(rows.dtypes)
    counted = []
    if "__damage" in types:
        counted.append(F.count("__damage").alias(_DAMAGED))
    if types.get("value") in ("binary", "string"):
        counted.append(F.coalesce(F.sum(F.octet_length("value")), F.lit(0)).alias(_BYTES))
    if not counted:
        raise InvalidInput(
            "observe() needs the column __damage, or value as binary or string. The rows have "
            f"{', '.join(types)}. Observe the rows of the source before any other step."
        )
    return rows.observe(name, *counted)


def observed_in(progress: StreamingQueryProgress) -> ObservedRows | None:
    """Return what was observed in a micro-batch, of all its sources together. None where nothing was."""
    found = [row.asDict() for name, row in progress.observedMetrics.items() if f"{name}.".startswith(f"{NAME}.")]
    if not found:
        return None
    return ObservedRows(*(sum(row.get(one, 0) for row in found) for one in (_DAMAGED, _BYTES)))
