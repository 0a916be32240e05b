"""The site shows the meaning of this project's words, and of no everyday word."""

from __future__ import annotations

from tools.check_links import ROOT
from tools.site_links import meanings


def test_own_words_have_their_meaning_and_those_of_spark_have_not() -> None:
    lines = meanings(ROOT / "docs" / "glossary.md").strip().splitlines()
    terms = [line.partition("]: ")[0].removeprefix("*[") for line in lines]
    assert {"control topic", "marker", "in doubt", "savepoint"} <= set(terms)
    assert not {"query", "broker", "fault", "package"} & set(terms)
    assert "*[intent]: the record that names the transaction of a batch before rows are sent." in lines
    assert all("*" not in line.partition("]: ")[2] for line in lines)
