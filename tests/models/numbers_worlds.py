"""The worlds in which deduplicated batches are explored, and for each rule one in which its absence is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.models.numbers import AS_MANY, SEVERAL, Numbers
from tests.models.numbers_rules import ALL, BACKED_BY, Rule

SAME: Final = Numbers()
OTHERS: Final = Numbers(SEVERAL, tries=2, late=False)
AS_MANY_OTHERS: Final = Numbers(AS_MANY, tries=2)

WORLDS: Final[dict[str, Numbers]] = {
    "the same rows at each try, writers that begin late": SAME,
    "other rows at each try": OTHERS,
    "as many other rows at each try, writers that begin late": AS_MANY_OTHERS,
}
"""Explored in every run of the tests."""

LARGE: Final[dict[str, Numbers]] = {
    "the same rows, four tries": Numbers(tries=4),
    "other rows at each try, three tries": replace(OTHERS, tries=3),
    "as many other rows at each try, three tries": replace(AS_MANY_OTHERS, tries=3),
}
"""Explored by `make models`."""

WITHOUT: Final[dict[Rule, Numbers]] = {
    Rule.NOTE: SAME,
    Rule.AWAIT: OTHERS,
    Rule.COMPARE: OTHERS,
    Rule.KEEP: OTHERS,
    Rule.NEWEST: AS_MANY_OTHERS,
    Rule.DROPPED: AS_MANY_OTHERS,
    Rule.PROVEN: SAME,
}


def without(rule: Rule) -> Numbers:
    """Give the small world without a rule, and without the one that backs it."""
    return replace(WITHOUT[rule], rules=ALL - {rule, BACKED_BY.get(rule, rule)})
