"""Each rule of the protocol is needed, and its absence is found by the property test.

A test of exactly-once that can't fail proves nothing, so here it is run on variants with one rule removed.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st

from eos.commit import decision as commit
from tests.models.sink_rules import Rule
from tests.property.test_exactly_once import HIDDEN_COMMIT, PLANS, check, played
from tests.simulation import broken
from tests.simulation.world import Fault, Plan

VARIANTS: dict[Rule, dict[str, Any]] = {
    Rule.FENCE: {"client": broken.Unfenced},
    Rule.EPOCH: {"owner": broken.ReopensWithoutEpoch},
    Rule.OWNER_READABLE: {"owner": broken.TrustsAtOnce},
    Rule.END_LAST_INTENT: {"owner": broken.LeavesIntent},
    Rule.ONE_COORDINATOR: {"owner": broken.MovesCoordinator},
    Rule.LOG_DECIDES: {"owner": broken.SettlesBlindly},
    Rule.ADD_DATA: {"delivery": broken.AddsNothing},
    Rule.RECEIPTS: {"delivery": broken.LeavesSendsUnderWay},
    Rule.NO_RESEND: {"delivery": broken.Resends},
    Rule.ADD_CONTROL: {"client": broken.ControlNotAdded},
    Rule.MARKER_RECEIPT: {"client": broken.MarkerNotAwaited},
}

BY_THE_TABLE = {Rule.STALE: ("stale", "damaged"), Rule.REPLAY: ("replay", "other input")}
"""Rows of `eos.commit.decision.DECISION`."""

MODEL_ONLY = {
    Rule.INTENT,  # what it guards against, a transaction that no driver can name, ends by its ttl here
    Rule.FREE,
    Rule.PRIME,  # FREE does its work
    Rule.CLOSE,  # RECEIPTS does its work
    Rule.ALL_REPORTED,  # the simulation's writer is one thread: it returns when all is written
    Rule.ONCE,
    Rule.MARKER_INSIDE,
    Rule.RUN_STOPS,  # the simulation has no user code that could hide an error: this is for a real Spark to show
    Rule.FAILED_NOTED,
    Rule.HOLE,
}
"""Rules whose absence only the model of tests/models shows."""

EXAMPLES = [
    (Plan(), 1),
    (Plan(), 3),
    (HIDDEN_COMMIT, 2),
    (Plan(schedule=((1, 10),), faults={(0, "SEND in transaction", 0): Fault.CRASH_LATE}), 2),  # EPOCH
    (Plan(schedule=((0, 12), (2, 2), (0, 8), (1, 1), (1, 12))), 2),  # ONE_COORDINATOR
    (Plan(faults={(2, "SEND in transaction", 1): Fault.LOST}), 3),  # RECEIPTS
]
"""The property test's own examples, and plans that a search of some thousand found for three rules.

Where the order of requests has changed since, such a plan may show nothing; then the search finds another.
"""

SEARCH = settings(
    max_examples=4000,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def fails(played_with: tuple[Plan, int], parts: dict[str, Any]) -> bool:
    """Whether the property is broken by this plan."""
    try:
        check(played(*played_with, **parts))
    except AssertionError:
        return True
    return False


def test_every_rule_is_looked_at() -> None:
    assert VARIANTS.keys() | BY_THE_TABLE.keys() | MODEL_ONLY == set(Rule)


@pytest.mark.parametrize("parts", VARIANTS.values(), ids=[rule.name for rule in VARIANTS])
def test_a_missing_rule_is_found(parts: dict[str, Any]) -> None:
    if not any(fails(case, parts) for case in EXAMPLES):
        find(st.tuples(PLANS, st.integers(1, 3)), lambda case: fails(case, parts), settings=SEARCH, random=Random(1))


@pytest.mark.parametrize("rows", BY_THE_TABLE.values(), ids=[rule.name for rule in BY_THE_TABLE])
def test_a_missing_row_of_the_decision_is_found(rows: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "DECISION", broken.without_rules(*rows))
    find(st.tuples(PLANS, st.integers(2, 3)), lambda case: fails(case, {}), settings=SEARCH, random=Random(1))
