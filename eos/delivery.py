"""Gets the rows of a DataFrame into a transaction: through the driver if few, else by tasks.

Starting Python workers costs more than a whole transaction, so a small micro-batch is
collected to the driver and sent from there. Its size isn't known before it has run, and
running it twice would cost what we want to save, so the size of the sink's last batch
predicts it. The collected result is bounded all the same: rows past a limit, and the
bytes of large rows, are left behind in the executors. Where the prediction was wrong
nothing has been sent yet, and the tasks write the batch into the same transaction.

Only one result for each partition reaches the driver, however often Spark ran it, so the
driver path needs no proof of having run once; the task path asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from eos import spark
from eos.errors import InvalidInput
from eos.task import SUMMARY, parse_report, writing_task
from eos.writer import Report, Transaction, Writer, WriteSettings, write_all

# Rows larger than this are not collected: limit times partitions times this bounds the driver's memory.
LARGE_ROW_BYTES = 64 * 1024

# monotonically_increasing_id() is the partition in the upper 31 bits, the row within it in the lower 33.
_ROW_IN_PARTITION = (1 << 33) - 1


@dataclass(slots=True)
class Delivery:
    """Delivers DataFrames of message columns, and remembers how large the last one was.

    Attributes:
        settings: how rows become frames.
        small_batch_rows: batches of up to this many rows go through the driver; 0 turns that off.
        last_rows: rows of the sink's last batch; None when not known, which means tasks.
    """

    settings: WriteSettings
    small_batch_rows: int
    last_rows: int | None = None

    def expects_few(self) -> bool:
        """Tell whether the next batch is predicted to be small."""
        return self.last_rows is not None and self.last_rows <= self.small_batch_rows

    def collect(self, df: DataFrame) -> pa.Table | None:
        """Return the rows of a batch that is predicted to be small; None if it turns out not to be.

        After a failure, which may be that the result was too large for the driver, the tasks are next.
        """
        try:
            return collect_small(df, self.small_batch_rows)
        except Exception:
            self.last_rows = None
            raise

    def deliver(self, df: DataFrame, rows: pa.Table | None, topic: str | None, transaction: Transaction) -> Report:
        """Write every row of `df` into the transaction and return what was written.

        Args:
            df: the rows, as message columns.
            rows: what `collect` returned for `df`; None: the tasks write them.
            topic: of rows that name none.
            transaction: where to write.

        Raises:
            InvalidInput: a row can't be written.
            NotCommitted: it is not proven that each partition was written exactly once.
            NetworkError: the broker refused, or a frame's fate is unknown.
        """
        settings = replace(self.settings, topic=topic)
        if rows is not None:
            return _write_here(rows, settings, transaction)
        return _write_by_tasks(df, settings, transaction)


def collect_small(df: DataFrame, limit: int) -> pa.Table | None:
    """Return all rows of `df`, or None where it has more than `limit` rows or a large one.

    The plan runs over all its partitions to their end, as a stateful query needs. At most
    `limit` + 1 rows of each partition reach the driver, and nothing of a large row.
    """
    sizes = [f"coalesce(octet_length({name}), 0)" for name in ("value", "key", "ordering_key") if name in df.columns]
    large = f"{' + '.join(sizes)} > {LARGE_ROW_BYTES}"
    thinned = [f"if({large}, null, {name}) as {name}" for name in df.columns]
    # A partition that was cut short has sent more than `limit` rows, so the total tells.
    few = df.where(f"monotonically_increasing_id() & {_ROW_IN_PARTITION} <= {limit}")
    table = few.selectExpr(*thinned, f"{large} as __large").toArrow()
    if table.num_rows > limit or pc.any(table.column("__large")).as_py():
        return None
    return table.drop_columns(["__large"])


def _write_here(rows: pa.Table, settings: WriteSettings, transaction: Transaction) -> Report:
    return write_all(Writer(settings, transaction, first_partition=transaction.batch_id), rows.to_batches())


def _write_by_tasks(df: DataFrame, settings: WriteSettings, transaction: Transaction) -> Report:
    summaries = df.mapInArrow(writing_task(settings, transaction), SUMMARY).collect()
    for row in summaries:
        if row.invalid is not None:
            raise InvalidInput(row.invalid)
    spark.prove_run_once(df.sparkSession, [row.stage for row in summaries], [row.partition for row in summaries])
    total = Report()
    for row in summaries:
        total.merge(parse_report(row.report))
    return total
