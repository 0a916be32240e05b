"""What all verbs of `eos` share: a question, and how a command ends."""

from __future__ import annotations

import io
import sys

import pytest
import typer

from eos.cli import console
from eos.errors import InvalidInput


class Terminal(io.StringIO):
    """Standard input of a person."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("n\n", False), ("\n", False)])
@pytest.mark.parametrize("stdin", [Terminal, io.StringIO])
def test_a_person_or_a_pipe_answers(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stdin: type[io.StringIO],
    answer: str,
    agreed: bool,
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin(answer))
    assert console.agreed("Abort it?") is agreed
    assert capsys.readouterr().out == "", "it may be for a program"


@pytest.mark.parametrize("stdin", [io.StringIO(), None], ids=["nothing", "closed"])
def test_where_nobody_can_answer_the_way_to_say_it_beforehand_is_told(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InvalidInput, match=r"Nothing was done: there is no terminal to ask at\. --yes"):
        console.agreed("Abort it?")


def test_a_person_who_leaves_the_question_has_not_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(typer.Abort):
        console.agreed("Abort it?")
