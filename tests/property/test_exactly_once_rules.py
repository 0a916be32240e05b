"""Each rule of the protocol is needed, and its absence is found by the property test.

A test of exactly-once that can't fail proves nothing, so here it is run on variants with one rule removed.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st

from eos import commit
from tests.property.test_exactly_once import HIDDEN_COMMIT, PLANS, check, played
from tests.simulation import broken
from tests.simulation.world import Plan

VARIANTS: dict[str, dict[str, Any]] = {
    "trusts the log before OWNER is readable": {"owner": broken.TrustsAtOnce},
    "takes an ended transaction for an aborted one": {"owner": broken.SettlesBlindly},
    "leaves the transaction of the last INTENT open": {"owner": broken.LeavesIntent},
    "reopens the producer without its epoch": {"owner": broken.ReopensWithoutEpoch},
    "moves to another coordinator": {"owner": broken.MovesCoordinator},
    "does not fence": {"client": broken.Unfenced},
    "does not await the MARKER's receipt": {"client": broken.MarkerNotAwaited},
    "does not add the control topic": {"client": broken.ControlNotAdded},
    "sends again inside a transaction": {"writer": broken.resends},
    "reports with a send under way": {"writer": broken.leaves_sends_under_way},
    "does not add the data partitions": {"writer": broken.adds_nothing},
}

EXAMPLES = [(Plan(), 1), (Plan(), 3), (HIDDEN_COMMIT, 2)]
"""The property test's own examples."""

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


@pytest.mark.parametrize("parts", VARIANTS.values(), ids=VARIANTS.keys())
def test_a_missing_rule_is_found(parts: dict[str, Any]) -> None:
    if not any(fails(case, parts) for case in EXAMPLES):
        find(st.tuples(PLANS, st.integers(1, 3)), lambda case: fails(case, parts), settings=SEARCH, random=Random(1))


def test_the_row_against_stale_batches_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "DECISION", broken.without_rules("stale", "damaged"))
    find(st.tuples(PLANS, st.integers(2, 3)), lambda case: fails(case, {}), settings=SEARCH, random=Random(1))
