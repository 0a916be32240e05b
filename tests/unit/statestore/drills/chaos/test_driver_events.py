"""What a driver says arrives line by line, whatever its children print."""

from __future__ import annotations

import subprocess
import sys

from statestore.drills.chaos.driver_events import DriverEvents, Word

DRIVER = """
import subprocess, sys
from statestore.drills.chaos.driver_events import DriverEvents, Word, keep_standard_output, say
keep_standard_output()
for batch in range(3):
    subprocess.run([sys.executable, "-c", "print('half a line', end='')"], check=True)
    say(DriverEvents(Word.COMMITTED, "rows", batch))
"""


def test_what_a_child_prints_does_not_spoil_a_line() -> None:
    done = subprocess.run([sys.executable, "-c", DRIVER], check=True, capture_output=True, text=True)
    assert [DriverEvents.parse(line) for line in done.stdout.splitlines()] == [
        DriverEvents(Word.COMMITTED, "rows", batch) for batch in range(3)
    ]
    assert done.stderr == "half a line" * 3
