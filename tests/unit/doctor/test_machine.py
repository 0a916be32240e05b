"""What `eos doctor` says of the machine it runs on: versions, checksums, and the Python of Spark's workers."""

from __future__ import annotations

import os
import platform
import re
import sys
from itertools import product
from pathlib import Path

import pytest

from eos.doctor.brokers import broker_version
from eos.doctor.check import Check, CheckVerdict
from eos.doctor.machine import checksums, machine, pulsar_client, pyarrow, versions, workers
from eos.local.jars import PULSAR_VERSION
from eos.spark import capabilities
from eos.version import PACKAGES, PULSAR, SPARK, minor

CONSTRAINTS = Path(__file__).resolve().parents[3] / "requirements/constraints.txt"
DOCS = Path(__file__).resolve().parents[3] / "docs"
VERSIONS, TRIALS = DOCS / "reference" / "versions.md", DOCS / "trials.md"


@pytest.mark.parametrize(
    ("python", "spark", "verdict", "said"),
    [
        ("3.11.7", "4.3.0", CheckVerdict.GOOD, "every test runs"),
        ("3.12.1", "4.0.1", CheckVerdict.UNKNOWN, "was tried in part only"),
        ("3.14.0", "4.3.0", CheckVerdict.UNKNOWN, "was not tried"),
        ("3.11.7", "5.0.0.dev1", CheckVerdict.UNKNOWN, "was not tried"),
        ("3.11.7", "3.5.9", CheckVerdict.UNKNOWN, "was tried in part only"),
        ("3.11.7", "3.4.4", CheckVerdict.CARE, "Install pyspark 3.5 or newer"),
        ("3.11.7", None, CheckVerdict.UNKNOWN, "Run eos doctor where its driver runs"),
    ],
)
def test_versions_are_held_against_those_that_were_tried(
    python: str, spark: str | None, verdict: CheckVerdict, said: str
) -> None:
    found = versions(python, spark)
    assert (found.verdict, said in found.said) == (verdict, True), found


def test_the_page_of_trials_has_what_was_tried() -> None:
    """A row is tried as a whole where it lacks nothing."""
    rows = re.findall(r"^\| (3\.\d+) \| ([34]\.\d+) \| (.*?) \| .*? \|$", TRIALS.read_text(), re.MULTILINE)
    assert {(python, spark): tried.startswith("every test") for python, spark, tried in rows} == SPARK


def test_the_pulsar_of_every_test_is_the_one_that_is_started_and_the_one_of_the_page() -> None:
    whole = [version for version, every_test in PULSAR.items() if every_test]
    page = re.findall(r"^\| \S+ \| [\d.]+ \| ([\d.]+) \|.*every test", VERSIONS.read_text(), re.MULTILINE)
    assert whole == [PULSAR_VERSION] == page


def test_doctor_says_of_each_pulsar_and_each_spark_what_the_page_says() -> None:
    """The page's first table, cell by cell: where every test runs it is good, where some parts were tried it is not
    known, and a version that the page does not name was not tried."""
    row = re.compile(r"^\| \d\S* \|([^|]+)\|([^|]*)\|([^|]+)\| 17 \|([^|]+)\|", re.MULTILINE)
    pulsars: dict[str, bool] = {}
    sparks: dict[tuple[str, str], bool] = {}
    for of_spark, of_pulsar, pythons, tested in row.findall(VERSIONS.read_text()):
        whole = "every test" in tested
        pulsars |= {one: whole or pulsars.get(one, False) for one in of_pulsar.replace(",", " ").split()}
        for python, spark in product(*(cell.replace(",", " ").split() for cell in (pythons, of_spark))):
            sparks[python, minor(spark)] = whole or sparks.get((python, minor(spark)), False)
    assert pulsars.keys() == PULSAR.keys()
    for pulsar, whole in pulsars.items():
        assert broker_version(pulsar).verdict is (CheckVerdict.GOOD if whole else CheckVerdict.UNKNOWN), pulsar
        assert ("every test runs" if whole else "was tried in part only") in broker_version(pulsar).said
    assert "was not tried" in broker_version("4.1.3").said
    for (python, spark), whole in sparks.items():
        found = versions(f"{python}.1", spark)
        assert ("every test runs" if whole else "was tried in part only") in found.said, found


def test_the_page_claims_the_combinations_that_were_tried_and_no_other() -> None:
    """Those with a Pulsar are the columns of the matrix. Those of other Pythons are rows of the first table."""
    row = re.compile(r"^\| \d\S* \|([^|]+)\|([^|]*)\|([^|]+)\| 17 \|", re.MULTILINE)
    claimed = {
        (minor(spark), pulsar.strip(), python.strip())
        for sparks, pulsars, pythons in row.findall(VERSIONS.read_text())
        for spark, pulsar, python in product(*(cell.split(",") for cell in (sparks, pulsars, pythons)))
    }
    columns = re.findall(r"\| Spark ([\d.]+), Pulsar (\S+) (?=\|)", TRIALS.read_text())
    killed = {(minor(spark), pulsar, "3.11") for spark, pulsar in columns}
    assert killed
    assert claimed == killed | {(spark, "", python) for python, spark in SPARK if python != "3.11"}


@pytest.mark.parametrize(
    ("found", "verdict", "said"),
    [
        (pyarrow("26.0.7"), CheckVerdict.GOOD, "every test runs with 26.0.1"),
        (pyarrow("18.1.0"), CheckVerdict.UNKNOWN, "the tests run with 26.0.1 alone"),
        (pyarrow("17.0.0"), CheckVerdict.CARE, 'pip install "pyarrow>=18"'),
        (pyarrow(None), CheckVerdict.CARE, "is not installed here"),
        (pulsar_client("3.13.0"), CheckVerdict.GOOD, "every test runs with 3.13.0"),
        (pulsar_client("4.0.0"), CheckVerdict.UNKNOWN, "Neither sink nor source uses it"),
        (pulsar_client(None), CheckVerdict.GOOD, "Neither sink nor source needs it"),
    ],
)
def test_packages_are_held_against_those_that_were_tried(found: Check, verdict: CheckVerdict, said: str) -> None:
    assert (found.verdict, said in found.said) == (verdict, True), found


def test_packages_that_were_tried_are_those_of_the_tests_and_of_the_page() -> None:
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", CONSTRAINTS.read_text(), re.MULTILINE))
    assert {name: pinned[name] for name in PACKAGES} == PACKAGES
    page = dict(re.findall(r"^\| (\S+) \| (\d\S+) \|", VERSIONS.read_text(), re.MULTILINE))
    assert {name: page.get(name) for name in PACKAGES} == PACKAGES


def test_checksums_in_python_are_told() -> None:
    assert checksums("c").verdict is CheckVerdict.GOOD
    slow = checksums("python")
    assert (slow.verdict, "pip install" in slow.said) == (CheckVerdict.CARE, True)


def script(folder: Path, text: str) -> dict[str, str]:
    """An environment whose PYSPARK_PYTHON prints this."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return {"PYSPARK_PYTHON": str(program), "PATH": os.environ["PATH"]}


def test_the_python_of_the_workers_is_the_drivers(tmp_path: Path) -> None:
    ours = platform.python_version()
    own = workers({"PYSPARK_PYTHON": sys.executable})
    assert (own.verdict, f"Python {ours}, with eos" in own.said) == (CheckVerdict.GOOD, True), own
    for text, said in (
        ("echo 3.9.1", "the driver's is"),
        (f"echo {ours} eos pyarrow", "has no eos and no pyarrow"),
        ("exit 1", "does not run"),
        ("echo", "does not run"),
    ):
        found = workers(script(tmp_path, text))
        assert (found.verdict, said in found.said) == (CheckVerdict.CARE, True), found


def test_a_python_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    named = workers({"PYSPARK_PYTHON": "/no/such/python"})
    assert (named.verdict, "PYSPARK_PYTHON=/no/such/python" in named.said) == (CheckVerdict.CARE, True)
    default = workers({"PATH": str(tmp_path)})
    assert (default.verdict, "Spark starts python3" in default.said) == (CheckVerdict.CARE, True)


def test_workers_are_looked_at_where_spark_is(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = [check.about for check in machine({"PYSPARK_PYTHON": sys.executable})]
    assert everything == ["Python and Spark", "pyarrow", "pulsar-client", "CRC32C", "Python of workers"]
    monkeypatch.setattr(capabilities, "installed", lambda: None)
    assert [check.about for check in machine({})] == ["Python and Spark", "pyarrow", "pulsar-client", "CRC32C"]
