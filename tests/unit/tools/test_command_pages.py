"""The page of the command line has each verb with its arguments and options.

Its outputs are recorded, and those that need no broker are what the code prints now.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import statestore.checkpoint.verification
import statestore.savepoints.bookkeeper
from eos.local import Ports, instances
from eos.local.instances import Instance
from eos.local.process import ProcessId
from statestore.checkpoint.verification import VerificationReport
from statestore.savepoints.savepoint import Savepoint
from tools import command_pages
from tools.command_pages import APPS, SHOWN, STAND_INS, drawn, output_of, verbs

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
    monkeypatch.setattr(command_pages, "SHOWN", {"eos lag": SHOWN["eos topics"]})
    with pytest.raises(LookupError, match='has no output of "eos lag" under "Healthy"'):
        output_of("eos lag")


def test_each_verb_of_both_programs_has_a_section() -> None:
    for name, app in APPS.items():
        typed = [verb for verb, _ in verbs(name)]
        words = set(vars(get_command(app))["commands"])
        assert {verb.split()[1] for verb in typed} == words
        assert len(typed) == len(set(typed))
        assert all(f"### {verb}\n" in drawn(name) for verb in typed)


def section(program: str, verb: str) -> str:
    return drawn(program).partition(f"### {verb}\n")[2].partition("### ")[0]


def test_a_section_has_the_help_and_each_option_with_its_default() -> None:
    skip = section("eos", "eos sink skip")
    assert "- `--batch` (required): " in skip
    assert "Also `NAME`, `--namespace`, `--yes`, [`--json`](json/eos-sink-skip.json), [connection](#" in skip
    assert "--service-url" not in skip
    assert "- `--kills`: " in section("statestore", "statestore drill")


def test_an_option_of_several_verbs_is_told_once() -> None:
    page = drawn("statestore")
    assert page.count("A Hadoop option, fs.bk.NAME=VALUE") == 1
    assert section("statestore", "statestore cat").strip().endswith("Takes `URI`, `--option`.")


def test_json_leads_to_its_schema() -> None:
    assert "Also `URI`, `--option`, [`--json`](json/statestore-ls.json)." in section("statestore", "statestore ls")
    listed = section("eos", "eos sink list").strip()
    assert listed.endswith("Takes `--namespace`, [`--json`](json/eos-sink-list.json), [connection](#command-line).")
    assert "json" not in section("eos", "eos sink skip").replace("[`--json`](json/eos-sink-skip.json)", "")


def test_a_verb_that_is_there_by_two_names_is_told_once() -> None:
    assert section("statestore", "statestore savepoint restore").strip() == "The same as `statestore restore`."
