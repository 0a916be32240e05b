"""What holds for the library as a whole: its steps and its version."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import eos
from eos import version
from eos.commit.decision import DECISION
from eos.commit.transaction import ENDINGS, SILENCE, SUCCESS
from eos.sinks.producer_properties import introduction
from eos.steps import Step

# ---- steps


ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
CHAPTERS = dict(re.findall(r"^### `([^`]+)`\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL))


def test_the_steps_are_told_in_their_order_and_no_others() -> None:
    assert list(CHAPTERS) == [step.value for step in Step]


@pytest.mark.parametrize("step", list(Step))
@pytest.mark.parametrize("phase", ["before", "after"])
def test_each_step_says_why_a_crash_around_it_is_safe(step: Step, phase: str) -> None:
    told = re.search(rf"^\*\*Just {phase}\.\*\* (.+?)(?:\n\n|\Z)", CHAPTERS[step.value], re.MULTILINE | re.DOTALL)
    assert told is not None
    assert len(told[1]) > 20


def test_the_decision_table_is_shown_row_by_row() -> None:
    rows = [rule.name for rule in DECISION]
    shown = re.findall(r"^\| ([a-z' ]+) \|", TEXT, re.MULTILINE)
    assert [row for row in shown if row in rows] == rows


def test_each_answer_to_end_txn_is_shown() -> None:
    table = TEXT[TEXT.index("An answer to END_TXN proves this") : TEXT.index("## Each step")]
    named = {SUCCESS: "success", SILENCE: "no answer", "TransactionCoordinatorNotFound": "coordinator not found"}
    for _, answer in ENDINGS:
        assert named.get(answer, answer) in table


# ---- version


def test_modules_that_were_shipped_alone_have_no_version_and_write_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    assert eos.__version__ == version.own_version() != version.UNKNOWN
    monkeypatch.setattr(version, "version", missing)
    assert eos.__version__ == version.UNKNOWN
    assert introduction("flights", None, {}, encrypted=False).properties["eos.version"] == version.UNKNOWN
