"""Try each Python with each Spark: `make matrix`, or python tools/matrix.py [--only 3.12/4.1 ...] [--pulsar 4.2.4 ...].

Each combination gets a virtual environment of its own under build/matrix. The newest Spark runs the tests there. With
`--pulsar` each Spark runs queries whose driver is killed, on each of these Pulsars (tests/matrix/smoke.py). The answers
are kept in build/matrix/matrix.json, and drawn into docs/trials.md. With `--crash` each Spark runs the tests of `make
crash` in place of all this, on the one Pulsar that is named; what this Spark can't do is told in words.

A combination that can't be tried is reported as such, and does not count as passed: a Python that is not on this
machine, a Spark that can't be installed.

Exits with 0 when every combination passed, 1 when one failed, 2 when none failed and some could not be tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SPARKS = ("3.5", "4.0", "4.1", "4.2", "4.3")
TESTS = (
    "tests/unit",
    "tests/integration/test_sink_features.py::test_every_part_of_a_message_arrives",
    "tests/integration/test_sink_interrupted.py::test_a_batch_that_spark_forgot_to_commit_is_skipped",
)
"""The unit tests, and queries of a few batches on a Pulsar: one without state, one with, one by each path."""

PASSED, FAILED, NOT_HERE, NOT_INSTALLED = "passed", "failed", "not here", "not installed"
NOT_TRIED = "not tried"


class Row(NamedTuple):
    """How one combination ended: its versions, one of the five answers, and what it lacks or how many passed."""

    python: str
    spark: str
    answer: str
    what: str


def find_python(version: str) -> Path | None:
    """Return an interpreter of this version, from the PATH or from pyenv; None where there is none."""
    candidates = [shutil.which(f"python{version}"), shutil.which("python3"), *_of_pyenv(version)]
    tell = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in candidates:
        if candidate is None:
            continue
        told = subprocess.run([candidate, "-c", tell], capture_output=True, text=True, check=False)
        if told.stdout.strip() == version:  # a shim of pyenv is there for versions that are not
            return Path(candidate)
    return None


def _of_pyenv(version: str) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python"))]


def requirements(project: dict[str, object]) -> list[str]:
    """Return what the tests need, but for Spark. Args: pyproject.toml, parsed."""
    about = project["project"]
    assert isinstance(about, dict)
    groups = project["dependency-groups"]
    assert isinstance(groups, dict)
    wanted = [*about["dependencies"], *about["optional-dependencies"]["drills"], *groups["tests"], *groups["connect"]]
    return [one for one in wanted if not one.startswith(about["name"])]


def constraints(text: str) -> str:
    """Return the versions of requirements/constraints.txt, but for Spark and what belongs to it."""
    return "".join(f"{line}\n" for line in text.splitlines() if not re.match(r"(pyspark|py4j)==", line))


def outcome(junit: Path) -> tuple[int, list[str], list[str]]:
    """Return how many tests of a JUnit report passed, the names of those that failed, and why some were passed over."""
    passed, failed, skipped = 0, [], []
    for case in ElementTree.parse(junit).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname', '').rsplit('.')[-1]}::{case.get('name')}")
        elif (skip := case.find("skipped")) is None:
            passed += 1
        else:
            skipped.append(skip.get("message", ""))
    return passed, failed, skipped


def attempt(python: str, spark: str, tests: Sequence[str], folder: Path) -> Row:
    """Install one combination and run its tests; their output is kept beside the environment."""
    interpreter = find_python(python)
    if interpreter is None:
        return Row(python, spark, NOT_HERE, f"no Python {python} on the PATH or in pyenv")
    home = folder / f"python{python}-spark{spark}"
    home.mkdir(parents=True, exist_ok=True)
    environment = home / "venv"
    problem = _install(interpreter, spark, environment, home)
    if problem is not None:
        return Row(python, spark, NOT_INSTALLED, problem)
    if not tests:
        return Row(python, spark, NOT_TRIED, "installed, and nothing was run")
    report, log = home / "tests.xml", home / "tests.log"
    report.unlink(missing_ok=True)
    command = [str(environment / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not large"]
    surroundings = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONPATH")}
    surroundings["PATH"] = f"{environment / 'bin'}:{surroundings['PATH']}"
    with log.open("w") as out:
        ended = subprocess.run(
            [*command, f"--junit-xml={report}", *tests],
            cwd=ROOT,
            env=surroundings,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if not report.exists():
        return Row(python, spark, FAILED, f"pytest ended with {ended.returncode} and no report: {_last_line(log)}")
    passed, failed, skipped = outcome(report)
    if failed or ended.returncode:
        return Row(python, spark, FAILED, f"{len(failed)} of {passed + len(failed)} tests: {', '.join(failed)}")
    over = "; ".join(f"{skipped.count(why)} passed over: {why}" for why in dict.fromkeys(skipped))
    return Row(python, spark, PASSED, f"{passed} tests" + (f"; {over}" if over else ""))


def kill(row: Row, pulsar: str, folder: Path) -> Row:
    """Run queries that are killed on one Pulsar; return the row with how they ended."""
    home = folder / f"python{row.python}-spark{row.spark}"
    log, out = home / f"pulsar{pulsar}.log", folder / "matrix.json"
    command = [sys.executable, "-m", "tests.matrix.smoke", "--python", str(home / "venv" / "bin" / "python")]
    with log.open("w") as said:
        ended = subprocess.run(
            [*command, "--pulsar", pulsar, "--out", out, "--logs", home / f"pulsar{pulsar}"],
            cwd=ROOT,
            stdout=said,
            stderr=subprocess.STDOUT,
            check=False,
        )
    answers = re.findall(r'"answer": "([^"]+)"', log.read_text(errors="replace"))
    counts = ", ".join(f"{answers.count(answer)} {answer}" for answer in dict.fromkeys(answers)) or _last_line(log)
    good = ended.returncode == 0 and bool(answers) and row.answer != FAILED
    return row._replace(answer=PASSED if good else FAILED, what=f"{row.what}; Pulsar {pulsar}: {counts}")


def _install(interpreter: Path, spark: str, environment: Path, home: Path) -> str | None:
    """Make the environment, unless an earlier run did; return why it can't be made, None when it is there."""
    bounds, stamp = home / "constraints.txt", home / "installed.txt"
    bounds.write_text(constraints((ROOT / "requirements" / "constraints.txt").read_text()))
    wanted = [*requirements(tomllib.loads((ROOT / "pyproject.toml").read_text())), f"pyspark=={spark}.*"]
    said = "\n".join([*wanted, bounds.read_text()])
    if stamp.exists() and stamp.read_text() == said:
        return None
    stamp.unlink(missing_ok=True)  # an installation that is interrupted leaves none
    pip: list[str | Path] = [
        environment / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "-q",
    ]
    steps: list[list[str | Path]] = [
        [interpreter, "-m", "venv", "--clear", environment],
        [*pip, "--constraint", bounds, *wanted],
        [*pip, "--no-deps", "--editable", ROOT],
    ]
    log = home / "install.log"
    with log.open("w") as out:
        for step in steps:
            if subprocess.run(step, stdout=out, stderr=subprocess.STDOUT, check=False).returncode:
                return _last_line(log)
    stamp.write_text(said)
    return None


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def table(rows: Iterable[Row]) -> str:
    """Return the rows as a table in Markdown; of many failed tests the first three are named."""
    lines = ["| Python | Spark | | |", "|---|---|---|---|"]
    for row in rows:
        named = row.what.split(", ")
        what = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        lines.append(f"| {row.python} | {row.spark} | {row.answer} | {what} |")
    return "\n".join(lines)


def verdict(rows: Sequence[Row]) -> tuple[int, str]:
    """Return the exit code and a sentence that counts all answers."""
    answers = (PASSED, FAILED, NOT_HERE, NOT_INSTALLED, NOT_TRIED)
    counts = {answer: sum(row.answer == answer for row in rows) for answer in answers}
    words = ", ".join(f"{count} {answer}" for answer, count in counts.items())
    code = 1 if counts[FAILED] else 0 if counts[PASSED] == len(rows) else 2
    return code, f"Of {len(rows)} combinations: {words}."


def crash_tests() -> list[str]:
    """Return what pytest is to run for the tests of `make crash`: their own files, which each Spark can import."""
    files = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "@pytest.mark.crash" in path.read_text())
    return ["-m", "crash", "-n", "2", "--max-worker-restart=0", *(str(path.relative_to(ROOT)) for path in files)]


def chosen(only: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """Yield the combinations to try: all, or those that are named as PYTHON/SPARK."""
    for python in PYTHONS:
        for spark in SPARKS:
            if not only or f"{python}/{spark}" in only:
                yield python, spark


def main(arguments: Sequence[str], try_one: Callable[[str, str, Sequence[str], Path], Row] = attempt) -> int:
    """Try them one after the other, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="PYTHON/SPARK", help="such as 3.12/4.1; all by default")
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="what pytest runs")
    parser.add_argument("--crash", action="store_true", help="run the tests of make crash, and nothing else")
    parser.add_argument("--pulsar", nargs="+", default=[], metavar="VERSION", help="where queries are killed")
    given = parser.parse_args(arguments)
    if given.crash and len(given.pulsar) > 1:
        parser.error("--crash takes one Pulsar: each turn takes an hour")
    smokes: Sequence[str] = () if given.crash else given.pulsar
    if given.crash and given.pulsar:
        os.environ["EOS_TEST_PULSAR_VERSION"] = given.pulsar[0]
    combinations = list(chosen(given.only))
    if given.only and len(combinations) != len(set(given.only)):
        known = ", ".join(f"{python}/{spark}" for python, spark in chosen(None))
        parser.error(f"--only takes some of {known}")
    rows, folder = [], ROOT / "build" / "matrix"
    for python, spark in combinations:
        print(f"Python {python}, Spark {spark} …", file=sys.stderr, flush=True)
        tests = given.tests if spark == SPARKS[-1] else []  # the others lack what the tests import
        tests = crash_tests() if given.crash else tests
        rows.append(try_one(python, spark, tests, folder))
        for pulsar in smokes:
            if rows[-1].answer in (PASSED, FAILED, NOT_TRIED):
                rows[-1] = kill(rows[-1], pulsar, folder)
        print(f"    {rows[-1].answer}: {rows[-1].what}", file=sys.stderr, flush=True)
    if smokes and (found := folder / "matrix.json").exists():
        subprocess.run([sys.executable, ROOT / "tools" / "matrix_page.py", found], check=True)
    code, words = verdict(rows)
    print(f"{table(rows)}\n\n{words}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
