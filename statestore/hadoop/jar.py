"""Where the jar of the file system is."""

from __future__ import annotations

from pathlib import Path

from eos.spark.jar import how_to_get_it, shipped_jar
from statestore.errors import JarMissing


def jar_path() -> Path:
    """Return the jar with Hadoop's file system `bk://`, which is in the wheel, or from `make jar` in a source tree.

    Where the modules are in a zip, as with `spark-submit --py-files`, it is a copy that this process removes at its
    end.

    Raises:
        JarMissing: there is no jar.
    """
    path = shipped_jar()
    if path is None:
        raise JarMissing(how_to_get_it())
    return path
