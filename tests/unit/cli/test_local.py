"""What `eos local` prints, with the instances faked."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eos.cli import app as cli
from eos.cli import console
from eos.local import LocalError, LocalPulsar, Ports, instances
from eos.local.instances import Instance
from eos.local.places import remove_files
from eos.local.process import ProcessId
from eos.local.settings import OWN_FILES


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "cache"))


def instance(name: str, data: Path, *, running: bool) -> Instance:
    me = ProcessId.of(os.getpid())
    assert me is not None
    return Instance(name, Ports(1, 2, 3, 4), data, True, me if running else ProcessId(me.pid, "earlier"))


def eos(*words: str) -> str:
    return CliRunner().invoke(cli.typer_app, ["local", *words]).output


def test_status_tells_the_running_from_the_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [instance("a", tmp_path, running=True), instance("b", tmp_path, running=False)]
    monkeypatch.setattr(instances, "known", lambda: found)
    lines = [line.split("│") for line in eos("status").splitlines() if "│" in line]
    assert [[cell.strip() for cell in line[1:4]] for line in lines] == [
        ["a", "running", "pulsar://localhost:1"],
        ["b", "ended", "pulsar://localhost:1"],
    ]
    assert [(one["name"], one["running"]) for one in json.loads(eos("status", "--json"))] == [("a", True), ("b", False)]


def test_no_folder_and_no_address_is_cut_however_narrow_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    one = instance("a-name-of-some-length", tmp_path, running=True)
    monkeypatch.setattr(instances, "known", lambda: [one])
    monkeypatch.setattr(instances, "up", lambda name, **options: (one, True))
    summary = one.summary()
    assert all(str(summary[what]) in eos("status") for what in ("name", "service_url", "admin_url"))
    assert str(summary["data"]) in eos("up")


def test_status_of_nothing_says_how_to_start() -> None:
    assert "eos local up" in eos("status")
    assert json.loads(eos("status", "--json")) == []


def test_status_of_one_shows_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "known", lambda: [instance(name, tmp_path, running=True) for name in ("a", "b")])
    assert [one["name"] for one in json.loads(eos("status", "--name", "b", "--json"))] == ["b"]
    assert json.loads(eos("status", "-n", "c", "--json")) == []
    assert "No local Pulsar named 'c' is up. Start it with: eos local up --name c" in eos("status", "--name", "c")


def test_down_all_takes_down_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [instance("a", tmp_path, running=False), instance("b", tmp_path, running=False)]
    monkeypatch.setattr(instances, "known", lambda: found)
    taken: list[str] = []
    monkeypatch.setattr(instances, "down", lambda name, keep_data, tell: taken.append(name))
    eos("down", "--all")
    assert taken == ["a", "b"]


@pytest.mark.parametrize("words", [("--all", "--name", "a"), ("-n", "default", "--all")])
def test_down_all_with_a_name_takes_down_none(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "known", lambda: pytest.fail("it was taken down"))
    error = CliRunner().invoke(cli.typer_app, ["local", "down", *words]).exception
    assert isinstance(error, LocalError)
    assert "Nothing was done. Give --name or --all" in str(error)


def test_a_running_one_on_other_ports_than_asked_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "up", lambda name, **options: (instance(name, tmp_path, running=True), False))
    assert "on other ports than those asked for" in eos("up", "--port", "7")
    assert "on other ports" not in eos("up", "--port", "1")
    assert "on other ports" not in eos("up")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--version", "4.0.0"), "It is of Pulsar 4.2.4. Take it down first to have Pulsar 4.0.0."),
        (("--data", "elsewhere"), "Take it down first to have them elsewhere."),
        (("--memory", "2g"), "It keeps the memory and the settings that it was made with."),
        (("--setting", "a=1"), "It keeps the memory and the settings that it was made with."),
    ],
)
def test_an_option_without_effect_on_a_running_one_is_said(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, started = instance("default", tmp_path, running=True), False
    monkeypatch.setattr(instances, "up", lambda name, **options: (one, started))
    assert told in eos("up", *words)
    assert "Take it down first" not in eos("up", "--data", str(tmp_path))
    started = True
    assert "Take it down first" not in eos("up", *words)


@pytest.mark.parametrize("record", ["", "{", "[]", '{"name": "a"}'])
@pytest.mark.parametrize("words", [("status",), ("down",), ("down", "--all"), ("up",), ("kill", "broker-0")])
def test_a_damaged_record_is_named_with_what_to_do(record: str, words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "cache" / "spark-pulsar-eos" / "local" / "default" / "state.json"
    path.parent.mkdir(parents=True)
    path.write_text(record)
    error = CliRunner().invoke(cli.typer_app, ["local", *words]).exception
    assert isinstance(error, LocalError)
    assert "The record of the instance default is damaged, so its processes are not known. End those" in str(error)
    assert str(error).endswith(f"Then delete {path}")
    assert path.exists()


def test_a_running_one_without_tls_is_said_and_a_secured_ones_options_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instances, "up", lambda name, **options: (instance(name, tmp_path, running=True), False))
    assert "It speaks no TLS. Take it down first" in eos("up", "--tls")
    assert "--service-url" not in eos("up")
    (tmp_path / "authority.pem").touch()
    (tmp_path / "token").touch()
    assert "speaks no TLS" not in eos("up", "--tls")
    assert shlex.split(eos("up").splitlines()[-1]) == [
        *("--service-url", "pulsar+ssl://localhost:1", "--admin-url", "https://localhost:2"),
        *("--token", f"file:{tmp_path}/token", "--tls-trust-certs", f"{tmp_path}/authority.pem"),
    ]


def test_a_cluster_has_no_tls() -> None:
    answer = CliRunner().invoke(cli.typer_app, ["local", "up", "--cluster", "--tls"])
    assert "leave out --cluster" in str(answer.exception)


def test_settings_are_passed_on_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[object] = []

    def up(name: str, **options: object) -> tuple[Instance, bool]:
        passed.append(options["settings"])
        return instance(name, tmp_path, running=True), True

    monkeypatch.setattr(instances, "up", up)
    eos("up", "--setting", "a=1", "--setting", "b=x=y")
    assert passed == [{"a": "1", "b": "x=y"}]
    answer = CliRunner().invoke(cli.typer_app, ["local", "up", "--setting", "=1"])
    assert isinstance(answer.exception, LocalError)
    assert len(passed) == 1


def test_an_error_on_purpose_is_one_sentence_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["eos", "local", "up", "--setting", "wrong"])
    with pytest.raises(SystemExit) as ended:
        cli.app()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "error: --setting takes KEY=VALUE, not 'wrong'" in said
    assert "Traceback" not in said


def test_a_mistake_in_eos_itself_keeps_its_traceback_and_is_no_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def mistake() -> list[Instance]:
        raise ZeroDivisionError

    monkeypatch.setattr(instances, "known", mistake)
    monkeypatch.setattr(sys, "argv", ["eos", "local", "status"])
    with pytest.raises(SystemExit) as left:
        cli.app()
    assert left.value.code == console.NO_ANSWER
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.endswith("ZeroDivisionError\n")


def test_only_what_pulsar_wrote_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "data"
    (home / "zookeeper/version-2").mkdir(parents=True)
    (home / "broker.conf").write_text("")
    (home / "mine").write_text("")
    remove_files(home, OWN_FILES, with_folder=True)
    assert [path.name for path in home.iterdir()] == ["mine"]
    (home / "mine").unlink()
    remove_files(home, OWN_FILES, with_folder=False)
    assert home.exists()
    remove_files(home, OWN_FILES, with_folder=True)
    assert not home.exists()


def test_addresses_are_asked_for_only_after_the_start() -> None:
    pulsar = LocalPulsar()
    assert pulsar.pid is None
    for ask in (lambda: pulsar.service_url, lambda: pulsar.admin_url, lambda: pulsar.zookeeper, lambda: pulsar.log):
        with pytest.raises(LocalError, match="has not been started"):
            ask()
    pulsar.stop()
