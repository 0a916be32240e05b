"""The protocol of deduplicated batches, explored: it keeps its promise, and each of its rules is needed for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.models.checker import explore
from tests.models.numbers import Numbers
from tests.models.numbers_rules import ALL, BACKED_BY, Rule
from tests.models.numbers_worlds import OTHERS, WITHOUT, WORLDS, without

LONG = ("the same rows at each try, writers that begin late",)


@pytest.mark.parametrize(
    "numbers",
    [pytest.param(world, id=name, marks=[pytest.mark.large] if name in LONG else []) for name, world in WORLDS.items()],
)
def test_no_row_is_lost_or_doubled(numbers: Numbers) -> None:
    found = explore(numbers)
    assert found.complete, found


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name)
def test_without_a_rule_a_counter_example_is_found(rule: Rule) -> None:
    found = explore(without(rule), limit=200_000)
    assert found.trace is not None, f"{rule.value}: nothing is wrong without it. {found}"
    print(found.trace)


@pytest.mark.parametrize("rule", BACKED_BY, ids=lambda rule: rule.name)
def test_a_rule_that_another_one_backs_up_is_not_missed(rule: Rule) -> None:
    found = explore(replace(WITHOUT[rule], rules=ALL - {rule}))
    assert found.complete, found


def test_what_the_promise_rests_on_for_a_query_that_brings_other_rows_each_time() -> None:
    """As docs/how-to/guarantees.md says: no writer of an earlier try begins once a replay has seen none."""
    found = explore(replace(OTHERS, late=True))
    assert found.trace is not None
    assert any("sees no writers" in step for step in found.trace.steps), found.trace
