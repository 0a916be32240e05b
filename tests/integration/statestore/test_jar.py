"""The jar's own tests, but for those that take long: JUnit's tag `long`. `make java` runs them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eos.local.jvm import QUICK_START
from tests.child_process import ChildProcess

JAVA = Path(__file__).parents[3] / "statestore" / "java"
LEAST = 400
"""Fewer tests would mean that a class of them was not found."""

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@pytest.mark.timeout(900)  # with an empty repository of Maven's it fetches for minutes first
def test_the_quick_tests_of_the_jar_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the second compiler: it would take half of the minute that these JVMs live.
    monkeypatch.setenv("MAVEN_OPTS", " ".join(QUICK_START))
    command = ["mvn", "--batch-mode", "--no-transfer-progress", "test", "-DexcludedGroups=long"]
    with ChildProcess(command, tmp_path / "maven.log", home=JAVA) as maven:  # it starts JVMs of its own
        code = maven.wait()
    said = maven.output + maven.logged
    errors = "".join(line for line in said.splitlines(keepends=True) if not line.startswith("[INFO]"))
    assert code == 0, f"{errors[:20_000]}\nWhat the servers logged: {JAVA}/target/surefire-reports"
    counts = [int(count) for count in re.findall(r"Tests run: (\d+),.*Skipped: \d+$", said, re.MULTILINE)]
    assert max(counts) >= LEAST, said[-4_000:]
