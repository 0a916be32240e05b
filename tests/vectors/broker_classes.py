"""Asks the broker's own Java classes, by way of java/BrokerClasses.java."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from eos.local import checks, jars

_SOURCE = Path(__file__).parent / "java" / "BrokerClasses.java"


def ask(what: Literal["frame", "hash", "tags", "values"], lines: Iterable[str]) -> list[Any]:
    """Return the answers, one for each line."""
    command = [str(checks.java()), "-cp", jars.classpath(), str(_SOURCE), what]
    said = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, encoding="utf-8", timeout=120, check=False
    )
    assert said.returncode == 0, said.stderr
    return [json.loads(line) for line in said.stdout.splitlines()]
