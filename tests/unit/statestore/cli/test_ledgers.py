"""`statestore gc` and `orphans`: what they tell where ledgers could not be read."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from statestore.cli import ledgers
from statestore.cli.app import typer_app
from statestore.savepoints import bookkeeper


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the jar says."""
    said: dict[str, Any] = {"ledgers": [], "left": {}}
    maintenance = SimpleNamespace(swept=lambda fs: json.dumps(said), found=lambda fs: json.dumps(said))
    hadoop = SimpleNamespace(
        jvm=SimpleNamespace(eos=SimpleNamespace(bk=SimpleNamespace(Maintenance=maintenance))),
        explained=lambda where: nullcontext(),
        file_system=lambda where: None,
    )
    store = SimpleNamespace(hadoop=hadoop, address=SimpleNamespace(uri="bk://zk:2181/"))
    monkeypatch.setattr(ledgers, "_store", lambda uri, option: store)
    monkeypatch.setattr(bookkeeper, "remove_left", lambda store: [])
    monkeypatch.setattr(bookkeeper, "left_behind", lambda store: [])
    return said


@pytest.mark.parametrize(
    ("found", "left", "code"), [([], {}, 0), ([7], {}, 1), ([], {"ledger 9": "no"}, 3), ([7], {"ledger 9": "no"}, 1)]
)
def test_orphans_does_not_say_that_all_is_well_where_a_ledger_could_not_be_read(
    found: list[int], left: dict[str, str], code: int, answer: dict[str, Any]
) -> None:
    answer |= {"ledgers": found, "left": left}
    done = CliRunner().invoke(typer_app, ["orphans", "bk://zk:2181/"])
    assert done.exit_code == code, done.output
    assert ("No orphans" in done.output) == (not found and not left)
    assert ("1 ledger or their records could not be read" in done.output) == bool(left)
    assert ("The first is ledger 9 (no)" in done.output) == bool(left)
    said = CliRunner().invoke(typer_app, ["orphans", "bk://zk:2181/", "--json"])
    assert (said.exit_code, json.loads(said.stdout)["left_alone"]) == (code, left)


@pytest.mark.parametrize("left", [{}, {"ledger 9": "no", "writer 2": "no"}])
def test_gc_tells_what_it_has_left_alone(left: dict[str, str], answer: dict[str, Any]) -> None:
    answer |= {"ledgers": [5], "left": left}
    done = CliRunner().invoke(typer_app, ["gc", "bk://zk:2181/"])
    assert done.exit_code == 0
    assert "Freed 1 ledger: 5" in done.output
    assert ("2 ledgers or their records could not be read or deleted" in done.output) == bool(left)
    said = CliRunner().invoke(typer_app, ["gc", "bk://zk:2181/", "--json"])
    assert json.loads(said.stdout)["left_alone"] == left
