"""Where the jar of the file system is."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from statestore.errors import JarMissing

NAME = "eos-bk.jar"


def jar_path() -> Path:
    """Return the jar that makes `bk://` known to Hadoop; it comes with the wheel, or from `make jar` in a source tree.

    Where the modules are in a zip, as `spark-submit --py-files` has them, it is a copy that this process removes at
    its end.

    Raises:
        JarMissing: neither has happened.
    """
    path = _resource()
    if not path.is_file():
        raise JarMissing(
            f"{NAME} is not in this installation of statestore. In a source tree, `make jar` builds it (a JDK 17 and "
            "Maven are needed); a wheel brings it along: install one that was built with them."
        )
    return path if isinstance(path, Path) else _copied()


def _resource() -> Traversable:
    return resources.files("statestore") / "jars" / NAME


@cache
def _copied() -> Path:
    kept = ExitStack()
    atexit.register(kept.close)
    return kept.enter_context(resources.as_file(_resource()))
