"""Reports each micro-batch of a streaming query for Spark's progress, when the batch has been planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eos.metrics.source_report import SourceReport
from eos.source.lag_meter import LagMeter
from eos.source.offsets import Offsets
from eos.source.planned_reads import PlannedReads


class BatchReporter:
    """Reports the batches of one query."""

    def __init__(self, lag: LagMeter, planned: PlannedReads, losses: Callable[[], int]) -> None:
        """Args: measures the lag; counts entries; returns how many losses the driver has warned of so far."""
        self._lag, self._planned, self._losses = lag, planned, losses

    def report(self, start: Offsets, end: Offsets, newest: Offsets | None) -> dict[str, Any]:
        """Return the newest offset with the report of a batch in it. Raises nothing.

        Args: where the batch begins and ends; the last message of each topic, None where they are not known. Then the
        ends of the batch stand for them.
        """
        made = SourceReport(
            lags=() if newest is None else self._lag.measured(end, newest),
            planned=self._planned.measured(start, end),
            losses=self._losses(),
            lags_known=newest is not None,
        )
        delivered = {topic: position for topic, position in end.topics.items() if position.delivered}
        return made.within((Offsets(delivered) if newest is None else newest).as_json())
