"""Asks the broker's and the Java client's own classes, by way of the programs in java/."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from eos.local import checks, jars

_PROGRAMS = Path(__file__).parent / "java"


_OTHERS = {
    "schema": "SchemaValues.java",
    "encrypt": "Encryption.java",
    "decrypt": "Encryption.java",
    "ledgers": "Ledgers.java",
}


def ask(
    what: Literal["frame", "hash", "tags", "values", "schema", "encrypt", "decrypt", "ledgers"],
    lines: Iterable[str] = (),
) -> list[Any]:
    """Return the answers, one for each line; "ledgers" asks nothing."""
    program = _PROGRAMS / _OTHERS.get(what, "BrokerClasses.java")
    command = [str(checks.java()), "-cp", jars.classpath(), str(program), what]
    said = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, encoding="utf-8", timeout=120, check=False
    )
    assert said.returncode == 0, said.stderr
    return [json.loads(line) for line in said.stdout.splitlines()]
