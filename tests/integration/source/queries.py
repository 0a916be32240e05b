"""Runs of a streaming query over the Pulsar source without Spark: what the planner does, and what tasks do."""

from __future__ import annotations

from collections.abc import Callable

from eos.errors import InvalidInput
from eos.pulsar.wire.decoding import decode
from eos.source.brokers import PulsarBrokers
from eos.source.offsets import Offsets
from eos.source.options import SourceOptions
from eos.source.range_reader import read_range
from eos.source.ranges import Range
from eos.source.silence import USUAL_TIMEOUT, ReadTimeout
from eos.source.stream_plan import StreamPlan


class Query:
    """One run of a streaming query, as far as the brokers can tell.

    Attributes:
        told: what was lost and only warned of.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.told: list[str] = []
        self.brokers = PulsarBrokers(options)
        self.plan = StreamPlan(
            self.brokers,
            options.start,
            fail_on_data_loss=options.fail_on_data_loss,
            warn=self.told.append,
            split=self.brokers.splitter(),
        )

    def read(self, start: Offsets, until: Offsets) -> list[str]:
        """Return the messages of one micro-batch."""
        return read(self.brokers, self.plan.ranges(start, until), self.lose)

    def begins(self) -> Offsets:
        """Plan the first micro-batch, and return where it begins."""
        return Offsets(self.latest(self.plan.first()).starts)

    def latest(self, start: Offsets) -> Offsets:
        """Return the end of the next micro-batch, within the limits."""
        return self.plan.latest(start, self.options.limits)

    def behind(self, start: Offsets) -> list[str]:
        """Return the messages of the next micro-batch."""
        return self.read(start, self.latest(start))

    def lose(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise InvalidInput(what)
        self.told.append(what)


def fail(what: str) -> None:
    raise InvalidInput(what)


def read(
    brokers: PulsarBrokers,
    ranges: list[Range],
    lose: Callable[[str], None] = fail,
    timeout: ReadTimeout = USUAL_TIMEOUT,
) -> list[str]:
    """Return the messages of these ranges."""
    return [
        value.decode()
        for part in ranges
        for entries in read_range(
            part, brokers.open, lose, kind_of=brokers.entry_kind, timeout=timeout, may_pass_over=brokers.may_pass_over
        )
        for value in decode(entries, ["value"]).column("value").to_pylist()
    ]
