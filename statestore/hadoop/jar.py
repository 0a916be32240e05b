"""Where the jar of the file system is."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from statestore.errors import JarMissing

NAME = "eos-bk.jar"


def jar_path() -> Path:
    """Return the jar that makes `bk://` known to Hadoop; it comes with the wheel, or from `make jar` in a source tree.

    Raises:
        JarMissing: neither has happened.
    """
    path = Path(str(resources.files("statestore") / "jars" / NAME))
    if not path.is_file():
        raise JarMissing(
            f"{NAME} is not in this installation of statestore. In a source tree, `make jar` builds it (a JDK 17 and "
            "Maven are needed); a wheel brings it along: install one that was built with them."
        )
    return path
