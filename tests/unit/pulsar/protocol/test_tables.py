"""Every table, move by move: what is in it moves, what is not is refused and changes nothing."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from eos.errors import OutOfTurn, UnexpectedFrame
from eos.pulsar.protocol import diagram
from eos.pulsar.protocol.diagram import DRAWN
from eos.pulsar.protocol.machine import Machine, TransitionTable
from eos.pulsar.protocol.producer import ENDED, PRODUCER
from eos.pulsar.protocol.transaction import TRANSACTION, Input, State


def _inputs(table: TransitionTable[Any, Any]) -> list[StrEnum]:
    kind: type[StrEnum] = type(next(iter(table.moves))[1])
    return list(kind)


TABLES = [table for _, table in DRAWN]
EVERY = [
    pytest.param(table, state, what, id=f"{table.name}: {what} while {state}")
    for table in TABLES
    for state in table.states
    for what in _inputs(table)
]


def _at(table: TransitionTable[Any, Any], state: StrEnum) -> Machine[Any, Any]:
    machine = Machine(table)
    machine.state = state
    return machine


@pytest.mark.parametrize(("table", "state", "what"), EVERY)
def test_a_machine_does_what_its_table_says_and_nothing_else(
    table: TransitionTable[Any, Any], state: StrEnum, what: StrEnum
) -> None:
    machine = _at(table, state)
    expected = table.moves.get((state, what))
    assert machine.allows(what) == (expected is not None)
    if expected is not None:
        assert machine.take(what) is expected
        assert machine.state is expected
        return
    kind, who = (OutOfTurn, "asked for") if what in table.ours else (UnexpectedFrame, "received")
    with pytest.raises(kind, match=f"^{table.name}: {who} '{what}' while {state}$"):
        machine.take(what)
    assert machine.state is state


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_state_can_be_reached_and_every_input_happens_somewhere(table: TransitionTable[Any, Any]) -> None:
    reached = {table.start}
    while fresh := {to for (state, _), to in table.moves.items() if state in reached} - reached:
        reached |= fresh
    assert reached == set(table.states)
    assert {what for _, what in table.moves} == set(_inputs(table))
    assert table.ours <= {what for _, what in table.moves}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_nothing_but_an_own_wish_leads_out_of_the_first_state(table: TransitionTable[Any, Any]) -> None:
    assert {what for state, what in table.moves if state is table.start} <= table.ours


def test_a_transaction_never_sends_once_its_end_was_asked_for() -> None:
    senders = {state for state, what in TRANSACTION.moves if what is Input.SEND}
    assert senders == {State.OPEN, State.ADDING}
    ended = {State.COMMITTING, State.ABORTING}
    while fresh := {to for (state, _), to in TRANSACTION.moves.items() if state in ended} - ended:
        ended |= fresh
    assert not ended & senders


def test_a_commit_never_follows_an_abort_that_may_have_been_lost() -> None:
    unsure = {State.ABORTING}
    doubtful = {State.ABORT_UNSURE}
    assert not {(state, Input.COMMIT) for state in unsure | doubtful} & TRANSACTION.moves.keys()


def test_a_producer_that_has_ended_stays_ended() -> None:
    assert PRODUCER.ends == ENDED
    assert not [state for state, _ in PRODUCER.moves if state in ENDED]


# ---- as they are drawn


def test_the_page_in_docs_is_fresh() -> None:
    assert diagram.main(["--check"]) == 0


def test_a_stale_page_is_noticed_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diagram, "PAGE", tmp_path / "protocol-states.md")
    assert diagram.main(["--check"]) == 1
    assert "is stale" in capsys.readouterr().out
    assert diagram.main([]) == 0
    assert diagram.main(["--check"]) == 0


def test_every_move_is_on_the_diagram() -> None:
    drawn = diagram.mermaid(TRANSACTION)
    for (state, what), to in TRANSACTION.moves.items():
        if to is not state:
            (arrow,) = [line for line in drawn.splitlines() if line.startswith(f"    {state.name} --> {to.name} :")]
            assert str(what) in arrow
