"""Gets the rows of a DataFrame into a transaction: through the driver if few, else by tasks.

Starting Python workers costs more than a whole transaction, so a small micro-batch is collected to the driver and sent
from there. Its size isn't known before it has run, and running it twice would cost what we want to save, so the size of
the sink's last batch predicts it. The rows that reach the driver are bounded all the same, see `Care`. Where the
prediction was wrong nothing has been sent yet, and the tasks write the batch into the same transaction.

Only one result for each partition reaches the driver, however often Spark ran it, so the
driver path needs no proof of having run once; the task path asks for it. Both ask whether a shuffle was computed again
where Spark does not compare its rows (`ShuffleWatch`).

All that sends nothing (collecting, planning, asking for partitions) is done by `prepare`,
while the transaction is being opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from eos.delivery.abort_record import added_partitions, seal
from eos.delivery.path import DriverPath, TaskPath
from eos.delivery.producers import OpenProducers
from eos.delivery.row_writer import WriteSettings
from eos.delivery.task import SUMMARY, new_carrier, writing_task
from eos.pulsar.net.client import Client
from eos.pulsar.net.producer_group import known_partition_counts
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.txn import TxnId
from eos.side_by_side import side_by_side
from eos.spark import jobs
from eos.spark import query as spark
from eos.spark.stages import ShuffleWatch

# Rows larger than this are not collected: limit times partitions times this bounds the driver's memory.
LARGE_ROW_BYTES = 64 * 1024

# Tasks get the partitions of so many topics: some 70 bytes each go to every task.
_TOPICS_TOLD = 10_000

# Up to this many bytes a row on the average of the last batch, the next one's rows are not looked at one by one.
SMALL_ROW_BYTES = 4 * 1024

# Spark's limit on results is trusted up to this part of the driver's heap.
_TRUSTED_PART_OF_HEAP = 0.5

# monotonically_increasing_id() is the partition in the upper 31 bits, the row within it in the lower 33.
_ROW_IN_PARTITION = (1 << 33) - 1


class Write(NamedTuple):
    """The rows of one DataFrame, and where they go.

    Attributes:
        df: the rows, as message columns.
        topic: of rows that name none.
        schema: of the values that go to that topic; None where they are bytes that no schema is known of.
    """

    df: DataFrame
    topic: str | None
    schema: Registered | None = None


class Care(Enum):
    """The bound on a collected batch that keeps it from being too much for the driver's memory.

    Each check is an operator that Spark must plan, which costs a small batch some ten milliseconds. So no check is made
    without need.

        SIZES  a row limit for each partition, and the bytes of large rows stay in the executors. For an unknown
               batch, such as the first of a run: the one before may have been too much
        ROWS   a row limit for each partition; rows are small, as those of the last batch were
        SPARK  spark.driver.maxResultSize: Spark ends a job whose result is larger. Rows are small, and that limit
               is well below the driver's heap
    """

    SIZES = "sizes"
    ROWS = "rows"
    SPARK = "spark"


def least_care(session: SparkSession) -> Care:
    """Return what is enough for a batch of small rows, by Spark's limit on results and by the driver's heap."""
    limit = spark.result_limit(session)
    if limit is None:
        return Care.SIZES
    return Care.SPARK if limit <= spark.driver_heap(session) * _TRUSTED_PART_OF_HEAP else Care.ROWS


@dataclass(slots=True)
class Delivery:
    """Gets DataFrames of message columns ready to be sent, and remembers how large the last batch was; for one run.

    Attributes:
        client: of the cluster.
        settings: how rows become frames.
        small_batch_rows: batches of up to this many rows go through the driver; 0 turns that off.
        last_rows: rows of the last batch that the log knows; None when not known, which means tasks.
        row_bytes: of a row, on the average of the last batch that had any; None until this run of the query has
            committed one, so that a batch that was too much for the driver's memory is met with care after the restart.
        least_care: taken of a batch whose rows are expected to be small.
        compares_shuffles: whether Spark itself fails a job whose shuffle was computed again and has other rows now.
        last_topics: the topics of the last batch, whose partitions the driver asks for once where each row names its
            topic: else each task would ask for them.
        named: the topics where rows of this run may go that name theirs: those of committed batches, and those that
            tasks of a failed try have told.
        ask: asks the admin API which physical topics a transaction has; None where the sink has no admin URL. It gives
            None once the transaction has ended.
    """

    client: Client
    settings: WriteSettings
    small_batch_rows: int
    last_rows: int | None = None
    row_bytes: float | None = None
    least_care: Care = Care.SIZES
    compares_shuffles: bool = True
    last_topics: Collection[str] = ()
    named: set[str] = field(default_factory=set)
    ask: Callable[[TxnId], Collection[str] | None] | None = None
    _functions: dict[tuple[str | None, bytes], jobs.ArrowFunction] = field(default_factory=dict)
    _functions_of: SparkContext | None = None
    _carrier: str = field(default_factory=new_carrier)
    _producers: OpenProducers = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self._producers = OpenProducers(
            self.client, settings.max_in_flight_bytes, introduction=settings.introduced("driver")
        )

    @property
    def frame_limits(self) -> Mapping[str, int]:
        """The smaller frame limits of topics that refusals have taught."""
        return self.client.frame_limits.learned

    def close(self) -> None:
        """Give up the producers that are kept open. Rows can be delivered again afterwards."""
        self._producers.close()

    def committed(self, rows: int, size: int, topics: Collection[str] = ()) -> None:
        """Learn what the last batch held: rows, their bytes, and the topics where a later one may write again."""
        self.last_rows, self.last_topics = rows, topics
        self.named.update(topics)
        if rows:
            self.row_bytes = size / rows

    def prepare(self, write: Write, rows: pa.Table | None = None) -> DriverPath | TaskPath:
        """Collect a batch that is predicted to be small, or plan the job whose tasks write it. Sends nothing.

        Args:
            write: what is to be written.
            rows: all of it, if an earlier try has collected them.

        After a failure, which may be that the result was too large for the driver, the tasks are next.
        """
        small = self.last_rows is not None and self.last_rows <= self.small_batch_rows
        likely = self.last_topics if rows is None and not small and "topic" in write.df.columns else ()
        settings = replace(self.settings, topic=write.topic, schema=write.schema)
        partitions, found = side_by_side(
            lambda: self._partitions(write.topic, likely),
            lambda: rows if rows is not None else self._rows_or_job(write.df, settings, small),
        )
        if isinstance(found, DataFrame):
            names_topics = "topic" in write.df.columns
            topics = (self.named if names_topics else set()) | (set() if write.topic is None else {write.topic})
            watched = not self.compares_shuffles
            return TaskPath(found, self.client, partitions, self._carrier, topics, names_topics, watched=watched)
        return DriverPath(found, settings, self._producers, partitions)

    def seal(self, txn: TxnId, topics: Collection[str]) -> set[str]:
        """Have physical topics remember the abort that follows. Returns those that may not. Raises nothing."""
        return seal(self.client, txn, topics, self.settings.introduced("driver"))

    def added(self, txn: TxnId, until: float) -> frozenset[str] | None:
        """Return the physical topics of a transaction; None without an admin URL. As `added_partitions`."""
        return None if self.ask is None else added_partitions(self.ask, txn, until)

    def _partitions(self, topic: str | None, likely: Collection[str]) -> dict[str, int]:
        """Ask for the partitions of a write's own topic, and of those that its rows will likely name."""
        known = known_partition_counts(self.client, list(islice(likely, _TOPICS_TOLD)))
        return known if topic is None else known | {topic: self.client.partitions(topic)}

    def _rows_or_job(self, df: DataFrame, settings: WriteSettings, small: bool) -> pa.Table | DataFrame:
        """Return the collected rows of a batch that is predicted to be small and is, else the planned job."""
        if small:
            small_rows = self.row_bytes is not None and self.row_bytes <= SMALL_ROW_BYTES
            try:
                watch = None if self.compares_shuffles else ShuffleWatch(df.sparkSession)
                rows = collect_small(df, self.small_batch_rows, self.least_care if small_rows else Care.SIZES)
                if watch is not None:
                    watch.refuse_another_attempt()
            except Exception:
                self.last_rows = None
                raise
            if rows is not None:
                return rows
        return self._function(settings, df.sparkSession.sparkContext).planned(df)

    def _function(self, settings: WriteSettings, context: SparkContext) -> jobs.ArrowFunction:
        """Return the function that writes rows by these settings, as the tasks of a SparkContext run it."""
        key = (settings.topic, b"" if settings.schema is None else settings.schema.version)
        if self._functions_of is not context:
            self._functions, self._functions_of = {}, context
        if key not in self._functions:
            task = writing_task(self.client, settings, self._carrier)
            self._functions[key] = jobs.ArrowFunction(task, SUMMARY)
        return self._functions[key]


def collect_small(df: DataFrame, limit: int, care: Care) -> pa.Table | None:
    """Return all rows of `df`, or None where it has more than `limit` rows or, if sizes matter, a large one.

    The plan runs over all its partitions to their end, as a stateful query needs. At most `limit` + 1 rows of each
    partition reach the driver where `care` looks at the rows, and nothing of a large row where it looks at sizes.
    """
    if care is Care.SPARK:
        return jobs.collect(df, limit)
    # A partition that was cut short has sent more than `limit` rows, so the total tells.
    few = df.where(f"monotonically_increasing_id() & {_ROW_IN_PARTITION} <= {limit}")
    if care is Care.ROWS:
        return jobs.collect(few, limit)
    # A value that is still to be encoded has no size yet: that of its text is near enough.
    texts = {"value": "cast(value as string)", "key": "key", "ordering_key": "ordering_key"}
    sizes = [f"coalesce(octet_length({text}), 0)" for name, text in texts.items() if name in df.columns]
    large = f"{' + '.join(sizes)} > {LARGE_ROW_BYTES}"
    thinned = [f"if({large}, null, {name}) as {name}" for name in df.columns]
    table = jobs.collect(few.selectExpr(*thinned, f"{large} as __large"), limit)
    if table is None or pc.any(table.column("__large")).as_py():
        return None
    return table.drop_columns(["__large"])
