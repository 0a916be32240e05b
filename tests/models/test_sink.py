"""The commit protocol, explored: it keeps its promise, and each of its rules is needed for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.models.checker import explore
from tests.models.sink import Sink
from tests.models.sink_rules import ALL, Rule
from tests.models.sink_worlds import BACKED_BY, WITHOUT, WORLDS, without


@pytest.mark.parametrize("sink", WORLDS.values(), ids=WORLDS.keys())
def test_no_batch_is_lost_doubled_or_torn(sink: Sink) -> None:
    found = explore(sink)
    assert found.complete, found


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name)
def test_without_a_rule_a_counter_example_is_found(rule: Rule) -> None:
    found = explore(without(rule), limit=60_000)
    assert found.trace is not None, f"{rule.value}: nothing is wrong without it. {found}"
    print(found.trace)


@pytest.mark.parametrize("sink", sorted({*WITHOUT.values()} - {*WORLDS.values()}, key=repr), ids=str)
def test_with_all_rules_those_worlds_have_no_fault(sink: Sink) -> None:
    found = explore(sink)
    assert found.complete, found


@pytest.mark.parametrize("rule", BACKED_BY, ids=lambda rule: rule.name)
def test_a_rule_that_another_one_backs_up_is_not_missed(rule: Rule) -> None:
    found = explore(replace(WITHOUT[rule], rules=ALL - {rule}))
    assert found.complete, found


def test_the_marker_may_be_sent_beside_the_data_and_partitions_added_early() -> None:
    """These freedoms make more states, so what holds with them holds without."""
    least = replace(Sink(drivers=2, silences=0), marker_beside=False, predicted=False)
    most = replace(least, marker_beside=True, predicted=True)
    few, many = explore(least), explore(most)
    assert few.complete
    assert many.complete
    assert few.states < many.states
