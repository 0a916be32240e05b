"""What holds for the library as a whole: its steps and its version."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import eos
import statestore
from eos import version
from eos.commit.decision import DECISION
from eos.commit.transaction import ENDINGS, SILENCE, SUCCESS
from eos.pulsar.wire.message_id import EntryId
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


# ---- errors


def _errors_of(package: ModuleType) -> set[type[Exception]]:
    """The error classes of a package but for those of one module, in all modules that can be imported here."""
    found: set[type[Exception]] = set()
    for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if one.name.endswith("__main__"):
            continue
        try:
            module = import_module(one.name)
        except ImportError:  # of an extra that is not installed
            continue
        classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Exception)]
        found |= {one for one in classes if one.__module__ == module.__name__ and not one.__name__.startswith("_")}
    return found


ERRORS = sorted(_errors_of(eos) | _errors_of(statestore), key=lambda error: (error.__module__, error.__qualname__))
_SAMPLES = {
    "int": 7,
    "str": "text",
    "bool": True,
    "object": EntryId(8, 13),
    "EntryId": EntryId(8, 13),
    "OSError": OSError(28, "No space left"),
}
"""By the annotation of a parameter."""


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{error.__module__}.{error.__qualname__}")
def test_an_error_comes_whole_out_of_another_process(error: type[Exception]) -> None:
    """Tasks and pools of processes send their errors by pickle. One that can't be read again hides its own words."""
    given: list[Any] = ["it failed"]
    named: dict[str, Any] = {}
    if inspect.isfunction(error.__init__):
        asked = list(inspect.signature(error.__init__).parameters.values())[1:]
        given = [_SAMPLES[str(one.annotation)] for one in asked if one.kind is one.POSITIONAL_OR_KEYWORD]
        named = {one.name: _SAMPLES[str(one.annotation)] for one in asked if one.kind is one.KEYWORD_ONLY}
    made = error(*given, **named)
    again = pickle.loads(pickle.dumps(made))
    assert (type(again), str(again), repr(vars(again))) == (error, str(made), repr(vars(made)))


def test_there_are_errors_of_each_package() -> None:
    assert {"eos.errors", "eos.source.errors", "statestore.errors"} <= {error.__module__ for error in ERRORS}


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
