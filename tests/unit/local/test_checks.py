"""What is missing on a machine is said in words, with the way out."""

from __future__ import annotations

import errno
import os
import socket
from collections import namedtuple
from pathlib import Path

import pytest

from eos.local import LocalError, Ports, checks


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path / "bin"


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2"', 11),
        ("no version here", None),
    ],
)
def test_java_version_is_read_in_all_its_spellings(said: str, version: int | None) -> None:
    assert checks.java_version(said) == version


def test_java_on_the_path_is_found(only: Path) -> None:
    java = executable(only / "java", "echo 'openjdk version \"17.0.1\"' >&2")
    assert checks.java() == java


def test_java_home_wins_over_the_path(only: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(only / "java", "echo 'openjdk version \"11\"' >&2")
    home = executable(tmp_path / "jdk/bin/java", "echo 'openjdk version \"21\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert checks.java() == home


def test_missing_java_is_said(only: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"No java on the PATH, and JAVA_HOME is not set.*17"):
        checks.java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(LocalError, match=r"No java in JAVA_HOME \(.*gone\)"):
        checks.java()


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", r"is Java 11; Pulsar needs 17 or newer\. Set JAVA_HOME"),
        ("echo coffee", "does not say which Java it is: coffee"),
    ],
)
def test_old_java_and_something_else_called_java_are_said(only: Path, says: str, words: str) -> None:
    executable(only / "java", says)
    with pytest.raises(LocalError, match=words):
        checks.java()


def test_missing_maven_is_said(only: Path) -> None:
    with pytest.raises(LocalError, match=r"No mvn on the PATH.*install Maven"):
        checks.maven()
    mvn = executable(only / "mvn", "true")
    assert checks.maven() == mvn


def test_too_little_disk_is_said_for_a_folder_that_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(10**9, 9 * 10**8, 10**8))
    checks.free_space(tmp_path / "a/b", 10**8, "Fetching")
    with pytest.raises(LocalError, match=f"Fetching needs 200 MB on the disk of {tmp_path}, and 100 MB are free"):
        checks.free_space(tmp_path / "a/b", 2 * 10**8, "Fetching")


def test_a_disk_that_fills_up_is_said() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "some/file")
    with (
        pytest.raises(LocalError, match="Starting Pulsar: No space left on device: some/file"),
        checks.disk_errors("Starting Pulsar"),
    ):
        raise full


def test_other_failures_of_the_system_are_not_dressed_up() -> None:
    with pytest.raises(IsADirectoryError), checks.disk_errors("Starting Pulsar"):
        raise IsADirectoryError(errno.EISDIR, "is a folder")


def test_ports_in_use_are_named_with_their_options() -> None:
    taken, free, other, another = checks.pick_ports(4)
    with socket.create_server(("127.0.0.1", taken)):
        with pytest.raises(LocalError, match=f"port {taken} is in use, choose another with --http-port") as said:
            Ports(free, taken, other, another).check_free()
        assert str(free) not in str(said.value)
        assert "--ports auto" in str(said.value)
    Ports(free, taken, other, another).check_free()


def test_picked_ports_differ() -> None:
    assert len(set(checks.pick_ports(20))) == 20


@pytest.mark.parametrize("port", [0, -1, 65_536, 70_000])
def test_what_is_no_port_is_said(port: int) -> None:
    with pytest.raises(LocalError, match=f"--port {port} is not a port. Give a number from 1 to 65535"):
        Ports(broker=port).check_free()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalError, match=r"can't make the folder .*/file/data for data: Not a directory.*--data"):
        checks.make_folder(tmp_path / "file" / "data")
