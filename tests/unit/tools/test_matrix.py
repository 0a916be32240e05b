"""Each combination gets one of four answers, and what was not tried is never told as a success."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest

from eos.spark import capabilities
from eos.spark.capabilities import Capability, SparkLacks, require
from eos.steps import WRITER_STEPS
from tests.matrix.catalog import Rows, Step, tried
from tests.matrix.smoke import Smoke, answer
from tools import matrix
from tools.matrix import FAILED, NOT_HERE, NOT_INSTALLED, NOT_TRIED, PASSED, Row

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
        (
            "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('an old Spark')",
            PASSED,
            "1 tests; 1 passed over: an old Spark",
        ),
    ],
    ids=["good", "bad", "not loaded", "none", "passed over"],
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
        "dependency-groups": {"tests": ["pytest"], "connect": ["grpcio"]},
    }
    assert matrix.requirements(project) == ["numpy>=2", "jinja2", "pytest", "grpcio"]
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


def test_an_older_spark_runs_the_tests_of_make_crash_on_the_pulsar_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[str, Sequence[str], str]] = []

    def try_one(python: str, spark: str, tests: Sequence[str], folder: Path) -> Row:
        seen.append((spark, tests, os.environ["EOS_TEST_PULSAR_VERSION"]))
        return Row(python, spark, PASSED, "1 tests")

    monkeypatch.setenv("EOS_TEST_PULSAR_VERSION", "4.2.4")
    assert matrix.main(["--only", "3.11/3.5", "--crash", "--pulsar", "4.0.0"], try_one) == 0
    ((spark, tests, pulsar),) = seen
    assert (spark, pulsar, tests[:2]) == ("3.5", "4.0.0", ["-m", "crash"])
    assert "tests/integration/test_crash_matrix.py" in tests
    with pytest.raises(SystemExit):
        matrix.main(["--crash", "--pulsar", "4.0.0", "4.2.4"], try_one)
    assert "--crash takes one Pulsar" in capsys.readouterr().err


def test_a_combination_that_is_none_is_refused() -> None:
    with pytest.raises(SystemExit):
        matrix.main(["--only", "3.10/4.3"])


@pytest.mark.parametrize(
    ("said", "code", "before", "answer", "what"),
    [
        (["worked", "worked", "can't"], 0, NOT_TRIED, PASSED, "2 worked, 1 can't"),
        (["worked", "failed"], 1, PASSED, FAILED, "1 worked, 1 failed"),
        (["worked"], 0, FAILED, FAILED, "1 worked"),
        ([], 0, PASSED, FAILED, "it said nothing"),
    ],
)
def test_queries_that_were_killed_count_beside_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], code: int, before: str, answer: str, what: str
) -> None:
    def run(command: list[object], *, stdout: TextIO, **given: object) -> SimpleNamespace:
        stdout.writelines(f'{{"part": "x", "answer": "{one}", "why": ""}}\n' for one in said)
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr("subprocess.run", run)
    (tmp_path / "python3.11-spark3.5").mkdir()
    found = matrix.kill(Row("3.11", "3.5", before, "so far"), "4.2.4", tmp_path)
    assert found == Row("3.11", "3.5", answer, f"so far; Pulsar 4.2.4: {what}")


def test_queries_are_killed_where_the_driver_counts_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task knows its own batch only: it never comes to the third one, and nothing is killed."""
    moments: list[tuple[tuple[str, str], dict[str, Any]]] = []

    def killed(smoke: Smoke, part: str, crash: tuple[str, str], **fields: Any) -> str:
        moments.append((crash, fields))
        return "not run"

    monkeypatch.setattr(Smoke, "killed", killed)
    monkeypatch.setattr(Smoke, "__post_init__", lambda _: None)
    smoke = Smoke("python", "pulsar://localhost", "http://localhost", "localhost:2181", tmp_path)
    for part, attempt in smoke.parts():
        if part.startswith(("sink", "bk://")):
            attempt()
    assert len(moments) == 5
    for (step, _), fields in moments:
        assert fields.get("small_batch_rows") != 0 or step not in WRITER_STEPS


@pytest.mark.parametrize("capability", Capability)
def test_what_a_spark_lacks_is_no_failure(capability: Capability, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "installed", lambda: "3.5.9")
    with pytest.raises(SparkLacks) as refused:
        require(capability, "This part", "Use a newer Spark.")
    found = answer("a part", "it ended with 2", f"log\nerror: {refused.value}\nmore")
    assert (found.answer, found.why) == ("can't", str(refused.value).removesuffix(" Use a newer Spark."))
    assert answer("a part", "it ended with 2", "error: no broker answers").answer == "failed"


@pytest.mark.parametrize(
    ("step", "right", "wrong"),
    [
        (Step("select 1", [["1"]]), [["1"]], [["1"], ["1"]]),
        (Step("use pulsar", []), [], [["x"]]),
        (Step("describe t", words=("value", "binary")), [["value", "binary", ""]], [["value", "string", ""]]),
    ],
)
def test_a_statement_that_shows_something_else_is_named(step: Step, right: Rows, wrong: Rows) -> None:
    assert step.wrong(right) == ""
    assert step.wrong(wrong).startswith(step.statement)


def test_a_script_that_stops_early_or_shows_something_else_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"topic": "persistent://public/default/t", "values": ["1", "2"]}
    older = Step("select 2", [["2"]])
    monkeypatch.setattr(capabilities, "installed", lambda: "4.2.1")
    with pytest.raises(AssertionError, match="no such table"):
        tried(given, lambda statements: ([], "no such table"), older)
    with pytest.raises(AssertionError, match="show namespaces in pulsar: "):
        tried(given, lambda statements: ([[] for _ in statements], ""), older)
    monkeypatch.setattr(capabilities, "installed", lambda: "4.0.5")
    with pytest.raises(AssertionError, match="INSERT INTO is refused"):
        tried(given, lambda statements: ([[] for _ in statements[:-1]], "INSERT INTO is refused"), older)
