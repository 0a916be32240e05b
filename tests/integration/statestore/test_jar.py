"""The jar's own tests, but for those that take long: JUnit's tag `long`. `make java` runs them all."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

JAVA = Path(__file__).parents[3] / "statestore" / "java"
LEAST = 400
"""Fewer tests would mean that a class of them was not found."""

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@pytest.mark.timeout(900)  # with an empty repository of Maven's it fetches for minutes first
def test_the_quick_tests_of_the_jar_pass() -> None:
    command = ["mvn", "--batch-mode", "--no-transfer-progress", "test", "-DexcludedGroups=long"]
    with subprocess.Popen(
        command,
        cwd=JAVA,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as maven:
        try:
            said = maven.communicate()[0]
        finally:  # Maven starts JVMs of its own
            with suppress(ProcessLookupError):
                os.killpg(maven.pid, signal.SIGKILL)
    errors = "".join(line for line in said.splitlines(keepends=True) if not line.startswith("[INFO]"))
    assert maven.returncode == 0, f"{errors[:20_000]}\nWhat the servers logged: {JAVA}/target/surefire-reports"
    counts = [int(count) for count in re.findall(r"Tests run: (\d+),.*Skipped: \d+$", said, re.MULTILINE)]
    assert max(counts) >= LEAST, said[-4_000:]
