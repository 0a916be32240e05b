"""A streaming query's side of the source: what Spark calls on the driver and in its tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from eos.errors import EosError
from eos.source.batch_pace import FIRST_ENTRIES, Limits, Minimum, Pace
from eos.source.batch_reporter import BatchReporter
from eos.source.brokers import PulsarBrokers
from eos.source.entry_counts import EntryCounts
from eos.source.lag_meter import LagMeter
from eos.source.offsets import UNPLANNED, Offsets
from eos.source.optional_questions import OptionalQuestions
from eos.source.options import SourceOptions
from eos.source.planned_reads import PlannedReads
from eos.source.segment_path import SegmentPlan
from eos.source.shadow_topics import ShadowTopics
from eos.source.stream_plan import StreamPlan
from eos.source.tasks import RangePartition, read_partition
from eos.source.value_schema import ValueSchema

log = logging.getLogger("eos.source")


class PulsarStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the micro-batches of one query, and reads their ranges.

    Spark makes one in a process that lives as long as the query, and pickles another for the tasks:
    so what reaches the brokers is made when it is first needed, and never pickled.
    """

    def __init__(self, options: SourceOptions, schema: StructType, values: ValueSchema | None = None) -> None:
        """Args: the checked options; the checked schema; what `value` is typed by, None where it is bytes."""
        self._options = options
        self._schema = schema
        self._values = values
        self._opened: tuple[PulsarBrokers, StreamPlan, BatchReporter] | None = None
        self._planned = Offsets({}), Offsets({})
        self._segments = SegmentPlan(options)
        self._shadows = ShadowTopics(options)

    def initialOffset(self) -> dict[str, Any]:
        """Return where a query begins; asked again after a crash before batch 0 was committed."""
        return self._plan.first().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return that there is a limit, if there is one; what it says is in the options."""
        limits = self._options.limits
        if limits is None:
            return ReadAllAvailable()
        if limits.bytes is not None and limits.entries is None:
            return ReadMaxBytes(limits.bytes)
        return ReadMaxRows(limits.entries or FIRST_ENTRIES)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next micro-batch."""
        limits = None if isinstance(limit, ReadAllAvailable) else self._options.limits
        begin = Offsets.from_json(start)
        end = self._plan.latest(begin, limits)
        self._planned = Offsets(end.starts) if begin == UNPLANNED else begin, end
        return end.as_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the newest positions, with the report of the batch that was just planned, for Spark's progress.

        Where they are not known it returns the ends of that batch. Spark asks before it keeps the plan of the batch, so
        an error would end a query for its progress alone, and a new one with subscriptions that it never used.
        """
        newest = None
        try:
            newest = self._plan.newest()
        except EosError as error:
            log.warning("The newest messages are not known, so no lag is reported for this micro-batch: %s", error)
        return self._open()[2].report(*self._planned, newest)

    def prepareForTriggerAvailableNow(self) -> None:
        """End the query at what the topics hold now."""
        self._plan.stop_at_what_is_there()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the ranges of the topic partitions that brought something."""
        ranges = self._plan.ranges(Offsets.from_json(start), Offsets.from_json(end))
        found = zip(ranges, self._segments.paths(ranges), self._shadows.sources(ranges), strict=True)
        return [RangePartition(part, path, shadow_of=source) for part, path, source in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a range, in a task."""
        assert isinstance(partition, RangePartition)
        return read_partition(partition, self._options, self._schema, self._values)

    def stop(self) -> None:
        """Leave the topics; the subscriptions stay, and keep what is not read yet."""
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None

    @property
    def _plan(self) -> StreamPlan:
        return self._open()[1]

    def _open(self) -> tuple[PulsarBrokers, StreamPlan, BatchReporter]:
        if self._opened is None:
            brokers = PulsarBrokers(self._options)
            limits = self._options.limits or Limits()
            plan = StreamPlan(
                brokers,
                self._options.start,
                fail_on_data_loss=self._options.fail_on_data_loss,
                warn=log.warning,
                split=brokers.splitter(),
                pace=Pace(limits.seconds, time.monotonic) if limits.seconds is not None else None,
                minimum=Minimum(limits.least_entries, limits.longest_wait_s, time.monotonic)
                if limits.least_entries is not None
                else None,
            )
            self._opened = brokers, plan, self._reporter(brokers, plan)
            self._warn_of_policies(brokers)
        return self._opened

    def _reporter(self, brokers: PulsarBrokers, plan: StreamPlan) -> BatchReporter:
        questions = OptionalQuestions(time.monotonic)
        counts = EntryCounts(None if self._options.admin_url is None else brokers.ledgers_now, questions)
        # Without a limit only messages that came a moment ago are behind: not worth a question.
        publish_time = None if self._options.limits is None else brokers.publish_time
        return BatchReporter(
            LagMeter(counts, publish_time, questions),
            PlannedReads(counts, self._segments.path, reads_offloaded=self._options.offload is not None),
            lambda: plan.losses + brokers.lose.count,
        )

    def _warn_of_policies(self, brokers: PulsarBrokers) -> None:
        if self._options.admin_url is not None:
            with suppress(EosError):  # the plan, which asks the same, tells
                brokers.warn_of_policies(brokers.topics(all_named=True), log.warning)
