"""Each combination gets one of four answers, and what was not tried is never told as a success."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import matrix
from tools.matrix import FAILED, NOT_HERE, NOT_INSTALLED, PASSED, Row

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_a_python_that_is_not_here_is_told_as_such(tmp_path: Path) -> None:
    row = matrix.attempt("3.99", "4.3", [], tmp_path)
    assert row == Row("3.99", "4.3", NOT_HERE, "no Python 3.99 on the PATH or in pyenv")
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_is_asked_for_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version manager may have a command for a version that is not installed."""
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}")
    assert matrix.find_python("3.99") is None
    assert matrix.find_python(HERE) is not None


def test_an_installation_that_fails_tells_the_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no such version; exit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(matrix, "find_python", lambda version: failing)
    assert matrix.attempt(HERE, "4.9", [], tmp_path) == Row(HERE, "4.9", NOT_INSTALLED, "no such version")


def test_an_environment_is_made_once_and_anew_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[object] = []
    codes = iter([0, 0, 1, 0, 0, 0])

    def run(command: list[object], **given: object) -> SimpleNamespace:
        steps.append(command)
        return SimpleNamespace(returncode=next(codes))

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr(matrix, "find_python", lambda version: Path(sys.executable))
    for expected in ("it said nothing", None, None):
        assert matrix._install(Path(sys.executable), "4.3", tmp_path / "venv", tmp_path) == expected
    assert len(steps) == 6


@pytest.mark.parametrize(
    ("body", "answer", "what"),
    [
        ("def test_a(): pass\ndef test_b(): pass", PASSED, "2 tests"),
        ("def test_a(): pass\ndef test_b(): assert False", FAILED, "1 of 2 tests: test_x::test_b"),
        ("import no_such_module", FAILED, "1 of 1 tests: "),
        ("", FAILED, "0 of 0 tests: "),
    ],
    ids=["good", "bad", "not loaded", "none"],
)
def test_the_answer_is_that_of_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, answer: str, what: str
) -> None:
    def install(interpreter: Path, spark: str, environment: Path, home: Path) -> None:
        (environment / "bin").mkdir(parents=True)
        python = environment / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)

    monkeypatch.setattr(matrix, "_install", install)
    monkeypatch.setenv("PYTHONPATH", "")
    tests = tmp_path / "test_x.py"
    tests.write_text(body)
    row = matrix.attempt(HERE, "4.3", [str(tests)], tmp_path)
    assert (row.answer, row.what[: len(what)]) == (answer, what)


def test_spark_is_what_the_matrix_chooses_and_nothing_else_pins() -> None:
    project: dict[str, object] = {
        "project": {
            "name": "spark-pulsar-eos",
            "dependencies": ["numpy>=2"],
            "optional-dependencies": {"spark": ["pyspark>=4"], "drills": ["spark-pulsar-eos[spark]", "jinja2"]},
        },
        "dependency-groups": {"tests": ["pytest"]},
    }
    assert matrix.requirements(project) == ["numpy>=2", "jinja2", "pytest"]
    assert matrix.constraints("py4j==0.10.9\npyarrow==18\npyspark==4.3.0\n") == "pyarrow==18\n"


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ((PASSED, PASSED), 0),
        ((PASSED, NOT_HERE), 2),
        ((PASSED, NOT_INSTALLED), 2),
        ((FAILED, NOT_HERE), 1),
        ((PASSED, FAILED), 1),
    ],
)
def test_only_a_full_success_is_one(answers: tuple[str, str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    left = iter(answers)

    def try_one(python: str, spark: str, tests: Sequence[str], folder: Path) -> Row:
        return Row(python, spark, next(left), "a::b, c::d, e::f, g::h")

    assert matrix.main(["--only", "3.11/4.0", "3.12/4.3"], try_one) == code
    said = capsys.readouterr().out
    assert f"| 3.11 | 4.0 | {answers[0]} | a::b, c::d, e::f and 1 more |" in said
    assert f"{answers.count(PASSED)} passed, {answers.count(FAILED)} failed" in said


def test_a_combination_that_is_none_is_refused() -> None:
    with pytest.raises(SystemExit):
        matrix.main(["--only", "3.10/4.3"])
