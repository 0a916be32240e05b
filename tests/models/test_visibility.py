"""Visibility by stored entries alone, explored: it is what the broker shows, and each rule is needed for that."""

from __future__ import annotations

import pytest

from tests.models.checker import explore
from tests.models.visibility import WORLDS, Rule, Visibility, without


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_the_rule_shows_what_the_broker_shows(world: Visibility) -> None:
    found = explore(world)
    assert found.complete, found


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name)
def test_without_a_rule_a_counter_example_is_found(rule: Rule) -> None:
    found = explore(without(rule), limit=300_000)
    assert found.trace is not None, f"{rule.value}: nothing is wrong without it. {found}"
    print(found.trace)
