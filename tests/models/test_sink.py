"""The commit protocol, explored: it keeps its promise, and each of its rules is needed for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.models.checker import explore
from tests.models.sink import Sink
from tests.models.sink_rules import ALL, Rule
from tests.models.sink_world import World
from tests.models.sink_worlds import BACKED_BY, PAIR, WITHOUT, WORLDS, without

QUICK = ("two drivers, every step",)


@pytest.mark.parametrize(
    "sink",
    [pytest.param(sink, id=name, marks=[] if name in QUICK else [pytest.mark.large]) for name, sink in WORLDS.items()],
)
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


@pytest.mark.parametrize(
    "rules",
    [ALL, ALL - {Rule.FENCE}, ALL - {Rule.ADD_DATA}, ALL - {Rule.RECEIPTS}],
    ids=["all", "FENCE", "ADD_DATA", "RECEIPTS"],
)
def test_the_canonical_form_hides_no_fault(rules: frozenset[Rule]) -> None:
    """A state that is wrong before it is made canonical is wrong after it, and the other way round."""
    sink = replace(PAIR, rules=rules, partitions=1)
    level, seen = [sink.canonical(sink.start())], set[World]()
    while level and len(seen) < 3_000:
        following = [after for state in level if sink.fault(state) is None for _, after in sink.steps(state)]
        for state in following:
            canonical = sink.canonical(state)
            assert (sink.fault(state) is None) == (sink.fault(canonical) is None)
            assert sink.canonical(canonical) == canonical
        level = list({sink.canonical(state) for state in following} - seen)
        seen.update(level)
    assert len(seen) > 100
