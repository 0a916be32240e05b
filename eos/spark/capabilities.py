"""The capabilities of each Spark: one table, and the only place where this library looks at the version of Spark.

The version is read from the files of PySpark, once and without importing it. In a task it is the cluster's own, since
Spark's workers run Spark's PySpark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from eos.errors import InvalidInput

OLDEST: Final = (3, 5)
"""The oldest Spark that is supported; spelled in the bounds of pyproject.toml too."""


class Capability(Enum):
    """Something that not every supported Spark can do."""

    COMPARES_SHUFFLES = auto()
    DESCRIBES_OPERATORS = auto()
    NAMES_ARROW_TIMEZONES = auto()
    PYTHON_SOURCES = auto()
    PUSHES_FILTERS = auto()
    READS_STATE = auto()
    REPAIRS_SNAPSHOTS = auto()
    REWRITES_STATE = auto()
    SPLIT_DATAFRAMES = auto()
    TELLS_START = auto()


class Fact(NamedTuple):
    """Since which Spark there is a capability, and what it is, as the subject of a sentence."""

    since: tuple[int, int]
    what: str

    def is_here(self) -> bool:
        """Whether the Spark that is installed has it."""
        return minor(installed() or "") >= self.since


TABLE: Final[Mapping[Capability, Fact]] = {
    # 4.1 knows the option, but has it off and compares in part only.
    Capability.COMPARES_SHUFFLES: Fact((4, 2), "the check that a shuffle, computed again, has the same rows"),
    Capability.DESCRIBES_OPERATORS: Fact((4, 0), "a description of each stateful operator before its first task"),
    Capability.NAMES_ARROW_TIMEZONES: Fact((4, 2), "the choice of a timezone for Arrow's types"),
    Capability.PYTHON_SOURCES: Fact((4, 0), "data sources that are written in Python"),
    Capability.PUSHES_FILTERS: Fact((4, 1), "filters that are handed to a Python data source"),
    Capability.READS_STATE: Fact((4, 0), 'reading state as a table, format("statestore")'),
    Capability.REPAIRS_SNAPSHOTS: Fact((4, 1), "taking an older snapshot of state for one that can't be loaded"),
    Capability.REWRITES_STATE: Fact((4, 2), "repartitioning the state of a query that has ended"),
    Capability.SPLIT_DATAFRAMES: Fact((4, 0), "a class of its own for DataFrames of classic mode"),
    Capability.TELLS_START: Fact((4, 2), "telling a Python data source where a query stands"),
}
"""{capability: since which Spark}, read in the sources of Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0."""

READ_STATE: Final = (
    "Showing, comparing or rescaling state",
    "Nothing is changed. Run the command with a newer Spark: it reads the checkpoints of older ones too.",
)
"""For `require`: what is said where a command needs `Capability.READS_STATE`."""


class SparkLacks(InvalidInput):
    """The Spark that is installed can't do what was asked for."""


@lru_cache(maxsize=1)
def installed() -> str | None:
    """Return the version of the PySpark that this Python would import, None where there is none; "" if it has none."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    # By its loader: under spark-submit PySpark is in a zip.
    text = cast(Any, spec.loader).get_data(str(Path(spec.submodule_search_locations[0], "version.py"))).decode()
    found = re.search(r"\d+\.\d+[\w.]*", text[text.index("__version__") :])
    return found[0] if found else ""


def minor(version: str) -> tuple[int, int]:
    """Return (4, 3) for "4.3.0.dev1", and (0, 0) for a text that is not a version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def has(capability: Capability) -> bool:
    """Whether the Spark that is installed can do this."""
    return TABLE[capability].is_here()


def require(capability: Capability, wanted_by: str, instead: str) -> None:
    """Return if Spark can do this.

    Args:
        wanted_by: the option or call that needs it.
        instead: what to do on this Spark, as a sentence.

    Raises:
        SparkLacks: it names both, and the first Spark that can.
    """
    if has(capability):
        return
    fact = TABLE[capability]
    since = ".".join(map(str, fact.since))
    raise SparkLacks(
        f"{wanted_by} needs {fact.what}, and Spark {installed()} lacks it. It came with {since}. {instead}"
    )


class SparkMissing(InvalidInput, ImportError):
    """There is no PySpark for this Python, or it is too old."""


def require_pyspark() -> None:
    """Return if PySpark can be imported and is new enough; nothing of it is imported yet.

    Raises:
        SparkMissing: it says what to install.
    """
    wanted = ".".join(map(str, OLDEST))
    found = installed()
    if found is None:
        raise SparkMissing(
            f"eos needs PySpark {wanted} or newer, and this Python has none. Install it with "
            'pip install "spark-pulsar-eos[spark]", or put the python folder of your Spark on PYTHONPATH.'
        )
    if minor(found) < OLDEST:
        raise SparkMissing(
            f"eos needs PySpark {wanted} or newer, and this Python has {found or 'an unknown one'}. "
            'Use a newer Spark, or install one with pip install "spark-pulsar-eos[spark]".'
        )
