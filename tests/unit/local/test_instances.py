"""The instances of `eos local`: what a start that fails leaves as it was."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import pytest

from eos.local import LocalError, Ports, access, certificates, checks, instances, jars, records
from eos.local.instances import Instance
from eos.local.process import ProcessId
from eos.local.pulsar import LocalPulsar


@pytest.fixture(autouse=True)
def _fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no instance, and every start fail."""

    def fail(pulsar: LocalPulsar) -> None:
        raise LocalError("port 6650 is in use")

    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(LocalPulsar, "launch", fail)


def test_a_start_that_fails_leaves_the_secrets_of_earlier_data(tmp_path: Path) -> None:
    """Without them the next start would let everybody in, and the tokens of clients be worth nothing."""
    home = tmp_path / "data"
    access.require_tokens(home)
    for name in certificates.FILES:
        (home / name).write_text("made before")
    held = {path.name: path.read_bytes() for path in home.iterdir()}
    with pytest.raises(LocalError, match="is in use"):
        instances.up("other", data=home)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == held


def test_a_first_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "data"
    with pytest.raises(LocalError, match="is in use"):
        instances.up("first", data=home, asks_token=True)
    assert not home.exists()
    assert instances.known() == []


def test_a_folder_that_cant_be_one_leaves_the_reason_of_the_failure(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(LocalError, match="is in use"):
        instances.up("first", data=file / "data")
    with pytest.raises(LocalError, match="is in use"):
        instances.up("first", data=file)
    assert file.read_text() == "mine"


def test_a_file_is_no_folder_for_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(LocalPulsar, "_launch", lambda *_: pytest.fail("it was started"))
    monkeypatch.setattr(checks, "java", lambda: Path("java"))
    monkeypatch.setattr(jars, "classpath", lambda tell, version: [])
    file = tmp_path / "file"
    file.write_text("mine")
    for wrong in (file, file / "data"):
        with pytest.raises(LocalError, match=r"can't make the folder .*file.* Choose another with --data"):
            LocalPulsar(data=wrong).launch()


def test_a_cache_folder_that_cant_be_written_is_told_with_the_way_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "file"))
    for command in (instances.up, instances.down):
        with pytest.raises(LocalError, match=r"can't write to the cache folder .*file.*: Not a directory.*EOS_CACHE"):
            command("first")


def test_a_user_without_a_home_is_told_to_name_a_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("EOS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(LocalError, match=r"no cache folder. Name one by EOS_CACHE"):
        instances.known()


def _running(tmp_path: Path) -> None:
    """Record an instance whose process, this one, runs."""
    me = ProcessId.of(os.getpid())
    assert me is not None
    records.write("one", asdict(Instance("one", Ports(1, 2, 3, 4), tmp_path, False, me)))


def test_one_that_a_killed_up_has_left_while_it_started_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next command would be refused the connection."""
    answers = iter([False, False, True])
    monkeypatch.setattr(instances, "ready", lambda cluster, admin_url, coordinators: next(answers))
    monkeypatch.setattr(instances, "_POLL_S", 0)
    _running(tmp_path)
    assert instances.up("one")[1] is False
    assert next(answers, None) is None


def test_one_that_runs_and_does_not_answer_is_not_called_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "ready", lambda *asked: False)
    monkeypatch.setattr(instances, "_ANSWERS_WITHIN_S", 0.1)
    _running(tmp_path)
    with pytest.raises(
        LocalError, match=r"one was running already, and does not answer within 0.1 s. Its log is .*down"
    ):
        instances.up("one")
    assert instances.known() != []
