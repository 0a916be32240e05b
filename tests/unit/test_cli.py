"""The command line of eos as a whole, and how it prints."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
import typer

import eos
from eos.cli import console
from eos.errors import InvalidInput

# ---- the command


HEAVY = ("pyarrow", "pyspark", "numpy", "pandas", "httpx", "google.protobuf", "eos.pulsar.net.client")
PACKAGES = ("statestore.checkpoint", "statestore.savepoints", "statestore.roll_forward", "statestore.drills")
HEAVY_OF = {"eos": HEAVY, "statestore": (*HEAVY, "py4j", "xxhash", "rich.progress", *PACKAGES)}
LOADED = "import sys; from {}.cli.app import typer_app; print([name for name in sys.argv[1:] if name in sys.modules])"


@pytest.mark.parametrize("package", HEAVY_OF)
def test_the_command_is_ready_without_what_its_verbs_need(package: str) -> None:
    """It is asked for help far more often than for anything else."""
    command = [sys.executable, "-c", LOADED.format(package), *HEAVY_OF[package]]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["eos", "statestore"])
def test_a_terminal_that_lacks_a_character_gets_its_number(package: str) -> None:
    """Help is drawn in boxes, and a path or a row may have any character."""
    narrow = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "40", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-m", package, "--help"], capture_output=True, env=narrow)
    assert (done.returncode, done.stderr) == (0, b"")
    done.stdout.decode("ascii")


WITHOUT_PYSPARK = (
    "import sys; sys.modules.update(pyspark=None, py4j=None); import eos, statestore\n"
    "for name in statestore.__all__: getattr(statestore, name)\n"
    "from eos.cli.console import run; from statestore.cli.app import typer_app; run(lambda: typer_app(sys.argv[1:]))"
)


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "/tmp/a"),
        ("diff", "/tmp/a", "/tmp/b"),
        ("rescale", "/tmp/a", "/tmp/b", "--partitions", "3"),
        ("savepoint", "create", "file:///tmp/a", "one"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_verb_that_needs_spark_names_the_extra_that_brings_it(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYSPARK, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (console.NO_ANSWER, ""), done.stderr
    assert done.stderr.startswith("error: ")
    assert "spark-pulsar-eos[spark]" in done.stderr


@pytest.mark.parametrize("package", ["eos", "statestore"])
def test_the_version_is_that_of_the_installation(package: str) -> None:
    done = subprocess.run([sys.executable, "-m", package, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{package} {eos.__version__}\n"


# ---- console


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


def test_a_question_does_nothing_to_the_terminal_but_be_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert not console.agreed("Abort batch 1 of the query \x1b[2J?")
    assert capsys.readouterr().err.startswith(r"Abort batch 1 of the query \x1b[2J? [y/N]")


@pytest.mark.parametrize("stdin", [io.StringIO(), None], ids=["nothing", "closed"])
def test_where_nobody_can_answer_the_way_to_say_it_beforehand_is_told(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InvalidInput, match=r"Nothing was done. There is no terminal to ask at\. --yes"):
        console.agreed("Abort it?")


def test_a_person_who_leaves_the_question_has_not_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(typer.Abort):
        console.agreed("Abort it?")
