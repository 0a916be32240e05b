"""The worlds in which visibility is explored, and for each rule one in which its absence is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.models.visibility import ALL, Rule, Visibility

PUNCTUAL: Final = Visibility(length=5)
LATE: Final = Visibility(length=4, late=True, restarts=False)
DELETED: Final = Visibility(length=3, deletes=True)

WORLDS: Final[dict[str, Visibility]] = {
    "two transactions": Visibility(length=3),
    "two transactions, ledgers deleted": DELETED,
    "two transactions, late sends": LATE,
}
"""Explored in every run of the tests."""

LARGE: Final[dict[str, Visibility]] = {
    "two transactions, five entries": PUNCTUAL,
    "three transactions": replace(PUNCTUAL, length=4, transactions=3),
    "late sends, five entries": replace(LATE, length=5),
    "late sends, restarts": replace(LATE, restarts=True),
    "late sends, ledgers deleted": replace(LATE, deletes=True),
}
"""Explored by `make models`."""

WITHOUT: Final[dict[Rule, Visibility]] = {
    Rule.AFTER: LATE,
    Rule.FIRST: LATE,
    Rule.LATER: PUNCTUAL,
    Rule.HIDDEN: LATE,
}


def without(rule: Rule) -> Visibility:
    """Give the small world without a rule."""
    return replace(WITHOUT[rule], rules=ALL - {rule})
