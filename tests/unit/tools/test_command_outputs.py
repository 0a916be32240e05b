"""The outputs on the page of commands are recorded, and those that need no broker are what the code prints now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import statestore.checkpoint.verification
import statestore.savepoints.bookkeeper
from eos.local import Ports, instances
from eos.local.instances import Instance
from eos.local.process import ProcessId
from statestore.checkpoint.verification import VerificationReport
from statestore.savepoints.savepoint import Savepoint
from tools import command_outputs
from tools.command_outputs import SHOWN, STAND_INS, output_of
from tools.command_pages import APPS, drawn, verbs

CHECKPOINT, QUERY = "bk://localhost:2181/queries/counts", "aaaaaaaa-0000-4000-8000-000000000000"
NOON = 1_795_521_600_000  # of 2026-11-24, in UTC
COMMANDS = (
    "eos local status",
    f"statestore savepoint create counts-1 {CHECKPOINT}",
    f"statestore verify {CHECKPOINT} --operators 1",
)


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None
    local = Instance("default", Ports(6650, 8080, 2181, 3181), Path("/data"), True, me)
    report = VerificationReport(CHECKPOINT, QUERY, (6, 7), 24, 56_000, 41, ())
    savepoint = Savepoint("counts-1", "ready", CHECKPOINT, NOON, 7, QUERY, 24, 56_000, 2, 1, 5)

    def answer(found: Any) -> Any:
        return lambda *asked, **more: found

    monkeypatch.setenv("COLUMNS", "118")
    monkeypatch.setattr(instances, "known", answer([local]))
    monkeypatch.setattr(statestore.checkpoint.verification, "verify", answer(report))
    monkeypatch.setattr(statestore.savepoints.bookkeeper, "create", answer(savepoint))


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_recording_has_what_a_command_prints(command: str) -> None:
    program, *words = command.split()
    done = CliRunner().invoke(APPS[program], words)
    assert done.exit_code == 0, done.output
    assert f"```text\n$ {command}\n{done.output.rstrip()}\n```\n" in STAND_INS.read_text(encoding="utf-8")


def test_each_group_of_verbs_shows_an_output() -> None:
    def group(verb: str) -> str:
        return verb.rpartition(" ")[0]

    every = [verb for name in APPS for verb, _ in verbs(name)]
    assert set(SHOWN) <= set(every)
    groups = {group(verb) for verb in every} - {"statestore drill", "eos topics"}  # each drill takes minutes
    assert groups == {group(verb) for verb in SHOWN}
    page = "".join(map(drawn, APPS))
    assert all(f"```text\n{output_of(verb)}\n```" in page for verb in SHOWN)


def test_an_output_ends_before_its_exit_code() -> None:
    verified = output_of("eos sink verify")
    assert verified is not None
    assert verified.startswith("$ eos sink verify orders ")
    assert verified.endswith(": as promised.")
    assert output_of("eos sink skip") is None


def test_a_recording_without_the_verb_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_outputs, "SHOWN", {"eos lag": SHOWN["eos topics"]})
    with pytest.raises(LookupError, match='has no output of "eos lag" under "Healthy"'):
        output_of("eos lag")
