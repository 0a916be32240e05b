"""How much of the source's benchmark is measured, and where."""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks.plan import Broker, Tell

PARTITIONS = 2
"""Of each topic: a task for each of Spark's two cores."""


@dataclass(frozen=True)
class Case:
    """Rows as they lie in a topic.

    Attributes:
        name: its name in the results.
        messages: in each entry.
        rows: of the topic; a multiple of messages * PARTITIONS.
    """

    name: str
    messages: int
    rows: int


LARGE = Case("entries_of_1000", 1_000, 5_000_000)
SMALL = Case("entries_of_10", 10, 1_000_000)


@dataclass(frozen=True)
class SourcePlan:
    """The plan of one run of the benchmark.

    Attributes:
        broker: where to read.
        tell: takes a line about what has been done.
        stem: the names of all topics begin with it.
        large, small: the two kinds of topics.
        rounds, warm_ups: turns of each contender that count, and those before that don't.
        typed_rows: of each topic whose values have a schema.
        batches, batch_warm_ups: the same for the micro-batches within a turn of a streaming query.
    """

    broker: Broker
    tell: Tell
    stem: str = "bench"
    large: Case = LARGE
    small: Case = SMALL
    rounds: int = 5
    warm_ups: int = 1
    typed_rows: int = 1_000_000
    batches: int = 25
    batch_warm_ups: int = 5
