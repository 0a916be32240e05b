"""The names of `bk://`, explored: no file without its bytes, no ledger leaked, no answer false."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.models.checker import explore
from tests.models.names import Tree
from tests.models.names_rules import ALL, REDUNDANT, Rule
from tests.models.names_worlds import LIMIT, NOT_MISSED, WITHOUT, WORLDS, without


@pytest.mark.parametrize("tree", WORLDS.values(), ids=WORLDS.keys())
def test_each_file_has_its_bytes_and_each_ledger_is_freed(tree: Tree) -> None:
    found = explore(tree)
    assert found.complete, found


@pytest.mark.parametrize("rule", WITHOUT, ids=lambda rule: rule.name)
def test_without_a_rule_a_counter_example_is_found(rule: Rule) -> None:
    found = explore(without(rule), limit=60_000)
    assert found.trace is not None, f"{rule.value}: nothing is wrong without it. {found}"
    print(found.trace)


def test_every_rule_is_missed_or_said_to_be_redundant() -> None:
    assert set(Rule) == WITHOUT.keys() | REDUNDANT
    assert NOT_MISSED.keys() == REDUNDANT


@pytest.mark.large
@pytest.mark.parametrize("rule", NOT_MISSED, ids=lambda rule: rule.name)
def test_a_redundant_rule_is_not_missed(rule: Rule) -> None:
    for tree in NOT_MISSED[rule]:
        found = explore(replace(tree, rules=ALL - {rule}))
        assert found.complete, found


def test_the_worlds_of_the_rules_are_among_those_without_a_fault() -> None:
    left = {tree for tree in WITHOUT.values() if tree not in WORLDS.values()}
    for tree in left:
        assert explore(tree).complete


def test_an_answer_may_be_false_when_a_new_file_is_overwritten_before_its_writer_was_answered() -> None:
    found = explore(LIMIT)
    assert found.trace is not None
    assert found.trace.fault == "writer1 is told of `write /d/b`: there is such a file, and it was done"
