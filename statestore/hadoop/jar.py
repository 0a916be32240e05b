"""Where the jar of the file system is."""

from __future__ import annotations

from pathlib import Path

from eos.spark.jar import how_to_get_it, shipped_jar
from statestore.errors import JarMissing


def jar_path() -> Path:
    """Return the jar that makes `bk://` known to Hadoop; it comes with the wheel, or from `make jar` in a source tree.

    Where the modules are in a zip, as `spark-submit --py-files` has them, it is a copy that this process removes at
    its end.

    Raises:
        JarMissing: neither has happened.
    """
    path = shipped_jar()
    if path is None:
        raise JarMissing(how_to_get_it())
    return path
