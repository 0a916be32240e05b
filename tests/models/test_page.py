"""docs/models.md tells each rule in the words of the code."""

from __future__ import annotations

from pathlib import Path

from tests.models import names_rules, sink_rules, visibility_rules
from tests.models.names_worlds import WITHOUT

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text()


def test_the_page_has_each_rule_as_the_code_says_it() -> None:
    for rule in (*sink_rules.Rule, *visibility_rules.Rule, *WITHOUT):
        assert f"| {rule.name} | {rule.value} | " in PAGE
    for rule in names_rules.REDUNDANT:
        assert rule.name in PAGE
