"""A verb that has moved is not carried out: its present name is told."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from eos.cli.app import MOVED, typer_app
from eos.errors import InvalidInput


@pytest.mark.parametrize("before", MOVED)
def test_the_present_name_of_a_verb_is_told(before: tuple[str, str]) -> None:
    group, verb = before
    error = CliRunner().invoke(typer_app, [verb] if group == "eos" else [group, verb]).exception
    assert isinstance(error, InvalidInput)
    assert str(error).endswith(f"eos {MOVED[before]}")


@pytest.mark.parametrize("now", sorted(set(MOVED.values())))
def test_the_present_name_is_a_verb(now: str) -> None:
    found: Any = get_command(typer_app)
    for word in now.split():
        found = found.commands[word]
