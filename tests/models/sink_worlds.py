"""The worlds in which the sink is explored, and for each rule a small one in which its absence is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.models.sink import Sink
from tests.models.sink_rules import ALL, Rule

ALONE: Final = Sink(drivers=1, batches=1)
PAIR: Final = Sink(drivers=2, batches=1)
QUIET_PAIR: Final = replace(PAIR, silences=0)
SLIM_PAIR: Final = replace(QUIET_PAIR, partitions=1)

WORLDS: Final[dict[str, Sink]] = {
    "three drivers, two batches, behind a frozen log": Sink(silences=0, frozen=True),
    "three drivers, a silence": Sink(batches=1),
    "two drivers, two batches, a silence": Sink(drivers=2),
    "two drivers, two batches, an error that is swallowed": Sink(drivers=2, partitions=1, swallows=1),
    "two drivers, every step": Sink(drivers=2, silences=0, shortcuts=False),
    "the log's first use": Sink(batches=1, partitions=1, silences=0, primed=False, transactions=4),
    "the data's first use": replace(SLIM_PAIR, data_held=False),
}
"""Explored in every run of the tests."""

LARGE: Final[dict[str, Sink]] = {
    "three drivers, two batches, a silence": Sink(),
    "two drivers, three batches, two silences": Sink(drivers=2, batches=3, silences=2),
    "three drivers, two batches, two silences": Sink(silences=2),
    "three drivers, every step": Sink(silences=0, shortcuts=False),
    "two drivers, every step, with a silence": Sink(drivers=2, shortcuts=False),
    "three drivers behind a frozen log, with a silence": Sink(frozen=True),
    "three drivers, three batches, two errors that are swallowed": Sink(batches=3, partitions=1, swallows=2),
    "the log's first use, with a silence": Sink(batches=1, primed=False, transactions=4),
    "the data's first use, two batches": Sink(drivers=2, silences=0, data_held=False, transactions=2),
    "the data's first use, three drivers": Sink(batches=1, silences=0, data_held=False, partitions=1),
}
"""Explored by `make models`."""

WITHOUT: Final[dict[Rule, Sink]] = {
    Rule.FENCE: replace(SLIM_PAIR, waits=False),
    Rule.EPOCH: QUIET_PAIR,
    Rule.OWNER_READABLE: replace(SLIM_PAIR, frozen=True, waits=False),
    Rule.INTENT: QUIET_PAIR,
    Rule.END_LAST_INTENT: QUIET_PAIR,
    Rule.ONE_COORDINATOR: replace(SLIM_PAIR, data_held=False),
    Rule.FREE: replace(QUIET_PAIR, primed=False, transactions=4),
    Rule.PRIME: replace(PAIR, partitions=1, primed=False, transactions=3),
    Rule.REPLAY: QUIET_PAIR,
    Rule.STALE: replace(QUIET_PAIR, batches=2),
    Rule.LOG_DECIDES: ALONE,
    Rule.RUN_STOPS: replace(ALONE, batches=2, partitions=1, silences=0, swallows=1),
    Rule.FAILED_NOTED: replace(SLIM_PAIR, batches=2, swallows=1),
    Rule.HOLE: replace(PAIR, batches=2, partitions=1, swallows=1),
    Rule.ADD_DATA: ALONE,
    Rule.RECEIPTS: ALONE,
    Rule.NO_RESEND: ALONE,
    Rule.CLOSE: ALONE,
    Rule.ALL_REPORTED: ALONE,
    Rule.ONCE: ALONE,
    Rule.ADD_CONTROL: SLIM_PAIR,
    Rule.MARKER_INSIDE: QUIET_PAIR,
    Rule.MARKER_RECEIPT: replace(PAIR, partitions=1),
}

BACKED_BY: Final[dict[Rule, Rule]] = {Rule.CLOSE: Rule.RECEIPTS, Rule.PRIME: Rule.FREE}
"""Rules that another one makes superfluous in the model: their absence is found only where that one is absent too.

CLOSE is the second line: with each receipt awaited and nothing sent twice, nothing can be under way. It stands against
a send that the code should not have made, and a model knows no such sends. PRIME saves FREE its work.
"""


def without(rule: Rule) -> Sink:
    """Give the small world without a rule, and without the one that backs it."""
    return replace(WITHOUT[rule], rules=ALL - {rule, BACKED_BY.get(rule, rule)})
