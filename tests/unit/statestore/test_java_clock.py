"""The jar's use of the machine's clock: it jumps when NTP or an operator sets it, so nothing waits or decides by it."""

from __future__ import annotations

from pathlib import Path

import pytest

_JAVA = Path(__file__).parents[3] / "statestore" / "java" / "src" / "main" / "java"

_TOLD = {
    "BkOutputStream.java": "the time of a file's last change",
    "Packs.java": "the time of a file's last change",
    "Savepoints.java": "when a savepoint was begun",
}
"""Classes that note the time for people to see. Ages are counted by `Patience`, or by ZooKeeper's own times."""


@pytest.mark.parametrize("file", sorted(_JAVA.rglob("*.java")), ids=lambda file: file.name)
def test_only_times_that_are_shown_come_from_the_machines_clock(file: Path) -> None:
    assert file.read_text().count("currentTimeMillis") == (file.name in _TOLD)
