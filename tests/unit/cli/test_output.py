"""Output that can't be written: one sentence, and no exit code that means a finding."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from eos.cli import console
from eos.cli.output import READER_GONE, printing

FULL = Path("/dev/full")
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
WITHOUT_BUFFER = {**BUFFERED, "PYTHONUNBUFFERED": "1"}


def version(package: str) -> list[str]:
    return [sys.executable, "-m", package, "--version"]


@pytest.mark.skipif(not FULL.exists(), reason="Linux has it")
@pytest.mark.parametrize("environment", [BUFFERED, WITHOUT_BUFFER], ids=["at the end", "at once"])
@pytest.mark.parametrize("package", ["eos", "statestore"])
def test_a_full_disk_is_told_in_a_sentence(package: str, environment: dict[str, str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(version(package), stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    told = "error: the output can't be written: No space left on device. The command may have done its work all the"
    assert done.stderr == f"{told} same\n"
    assert done.returncode == console.NO_ANSWER


@pytest.mark.parametrize("environment", [BUFFERED, WITHOUT_BUFFER], ids=["at the end", "at once"])
@pytest.mark.parametrize("package", ["eos", "statestore"])
def test_a_reader_that_has_seen_enough_ends_the_command_without_a_word(
    package: str, environment: dict[str, str]
) -> None:
    nobody, pipe = os.pipe()
    os.close(nobody)
    done = subprocess.run(version(package), stdout=pipe, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (READER_GONE, "")


@pytest.mark.skipif(not FULL.exists(), reason="Linux has it")
def test_an_error_that_nobody_can_be_told_keeps_its_exit_code() -> None:
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "eos", "no-such-command"]
        assert subprocess.run(command, stdout=full, stderr=full).returncode == console.NO_ANSWER


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize(("words", "code"), [(("local", "status"), 0), (("local", "up", "--name", "-"), 2)])
def test_a_stream_that_is_closed_from_the_beginning_changes_nothing(
    words: tuple[str, ...], code: int, closed: tuple[int, ...], tmp_path: Path
) -> None:
    """As a daemon, or `>&-`, starts it."""
    record = tmp_path / "spark-pulsar-eos" / "local" / "one" / "state.json"
    record.parent.mkdir(parents=True)
    ended = {"name": "one", "ports": {}, "data": str(tmp_path), "data_is_ours": False}
    record.write_text(json.dumps({**ended, "process": {"pid": 1, "started": "never"}}))
    line = shlex.join([sys.executable, "-m", "eos", *words]) + "".join(f" {number}>&-" for number in closed)
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, env={**BUFFERED, "EOS_CACHE": str(tmp_path)}
    )
    assert (done.returncode, "Traceback" in done.stdout + done.stderr) == (code, False), done.stderr
    assert ("one" in done.stdout) == (code == 0 and 1 not in closed)


def test_an_error_of_a_file_is_none_of_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print("first")
    with pytest.raises(FileNotFoundError), printing(console.NO_ANSWER):
        (tmp_path / "none").read_text()
    print("then")
    assert capsys.readouterr().out == "first\nthen\n"
