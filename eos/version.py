"""The version of this library."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "unknown"


def own_version() -> str:
    """Return the version that is installed; "unknown" where the modules were shipped alone, as by --py-files."""
    try:
        return version("spark-pulsar-eos")
    except PackageNotFoundError:
        return UNKNOWN
