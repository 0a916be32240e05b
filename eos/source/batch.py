"""A batch read's side of the source: what Spark calls while it plans one, and in its tasks."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from eos.source.batch_plan import EVERYTHING, Wanted, batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.errors import Losses
from eos.source.options import SourceOptions
from eos.source.segment_path import SegmentPlan
from eos.source.shadow_topics import ShadowTopics
from eos.source.tasks import RangePartition, read_partition
from eos.source.value_schema import ValueSchema

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

log = logging.getLogger("eos.source")

APPLICATION_ID = "spark.app.id"
"""A local property of tasks: Spark SQL hands the session's configuration to the tasks of a query (SQLExecution)."""


class PulsarReader(DataSourceReader):
    """Plans one read of what the topics hold, and reads its ranges. Spark pickles it for the tasks."""

    def __init__(self, options: SourceOptions, schema: StructType, values: ValueSchema | None = None) -> None:
        """Args: the checked options; the checked schema; what `value` is typed by, None where it is bytes."""
        self._options = options
        self._schema = schema
        self._values = values

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges of the topic partitions that hold something."""
        brokers = PulsarBrokers(self._options)
        wanted = replace(self._wanted(), compacted=self._options.compacted)
        ranges = batch_ranges(
            brokers, self._options.start, self._options.end, wanted, Losses(self._options.fail_on_data_loss)
        )
        brokers.warn_of_policies(
            {part.topic for part in ranges}, log.warning, retained=self._options.retain_while_reading
        )
        ranges = brokers.splitter()(ranges)
        # Spark makes a partition of its own, without a range, of an empty list.
        paths, read_id = SegmentPlan(self._options).paths(ranges), uuid.uuid4().hex
        found = zip(ranges, paths, ShadowTopics(self._options).sources(ranges), strict=True)
        return [RangePartition(part, path, read_id, source) for part, path, source in found] or [InputPartition(None)]

    def _wanted(self) -> Wanted:
        return EVERYTHING

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a range, in a task; where that is asked for, while a subscription keeps the range stored."""
        if isinstance(partition, RangePartition):
            with self._retained(partition) if self._options.retain_while_reading else nullcontext():
                yield from read_partition(partition, self._options, self._schema, self._values)

    def _retained(self, partition: RangePartition) -> AbstractContextManager[None]:
        assert partition.read_id is not None, "a batch read is planned with one"
        return PulsarBrokers(self._options).retained(partition.part, retaining_name(partition.read_id))


def retaining_name(read_id: str) -> str:
    """Return the name of the subscription that keeps the range of this task stored, without the prefix.

    "spark-batch-APPLICATION-READ-TASK" tells whose it is: the id of the Spark application, where Spark hands it to its
    tasks, what all subscriptions of a read share, and the task's id in the application, the TID of Spark's logs.

    Each try of a task has a name of its own. Two ranges of one topic begin at different places, two tries of a task may
    run side by side, and one plan may be read by several jobs. A subscription has one place. A shared one would have to
    stay at the start of the earliest range, as backlog until the last range is read, and no task knows which of them is
    the last one.

    Args: the read's, as of `RangePartition`.
    """
    context = TaskContext.get()
    assert context is not None, "Spark reads a range in a task"
    application = re.sub("[^0-9A-Za-z_-]", "-", context.getLocalProperty(APPLICATION_ID) or "")
    return "-".join(filter(None, ("spark-batch", application, read_id, str(context.taskAttemptId()))))


class FilteredReader(PulsarReader):
    """The same, for the worker that pushes a query's filters down."""

    _filters: tuple[Filter, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what topics and times the rows can lie in; return all filters, for Spark to look at each row."""
        self._filters = tuple(filters)
        return filters

    def _wanted(self) -> Wanted:
        from eos.source.filters import what_passes  # not every Spark has filters

        return what_passes(self._filters)
