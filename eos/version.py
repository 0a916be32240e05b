"""The version of this library, and the versions that it was tried with.

`eos doctor` and its warnings go by this table alone. docs/reference/versions.md and docs/trials.md show the same, and a
test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

UNKNOWN = "unknown"

PULSAR: Final[Mapping[str, bool]] = {"4.0.0": False, "4.2.4": True, "5.0.0-M1": False}
"""{Pulsar: every test runs with each change}; False: tried in part, as docs/trials.md says."""

SPARK: Final[Mapping[tuple[str, str], bool]] = {
    ("3.11", "4.3"): True,
    ("3.11", "4.2"): False,
    ("3.11", "4.1"): False,
    ("3.11", "4.0"): False,
    ("3.11", "3.5"): False,
    ("3.13", "4.3"): False,
    ("3.13", "4.2"): False,
    ("3.13", "4.1"): False,
    ("3.12", "4.3"): False,
    ("3.12", "4.0"): False,
}
"""{(Python, Spark): every test runs with each change}; False: tried in part, as docs/trials.md says."""

PACKAGES: Final[Mapping[str, str]] = {"pyarrow": "26.0.1", "pulsar-client": "3.13.0"}
"""{package: the version that every test runs with}, as requirements/constraints.txt has them."""


def own_version() -> str:
    """Return the version that is installed; "unknown" where the modules were shipped alone, as by --py-files."""
    try:
        return version("spark-pulsar-eos")
    except PackageNotFoundError:
        return UNKNOWN


def minor(version: str) -> str:
    """Return "4.3" of "4.3.0.dev1"."""
    return ".".join(map(str, numbers(version)[:2]))


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the front of a version: (4, 2, 4) of "4.2.4-SNAPSHOT", (4, 3, 0) of "4.3.0.dev1"."""
    front = re.match(r"\s*(\d+(?:\.\d+)*)", version)
    return tuple(int(number) for number in front[1].split(".")) if front else ()
