"""This machine's part of what a job depends on: the versions, the checksums' code, and the Python of Spark's workers.

Only the machine is looked at on which the command runs: run it where the driver does, and with its environment.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import google_crc32c

from eos.doctor.check import Check, care, good, unknown
from eos.spark import capabilities
from eos.version import PACKAGES, SPARK, minor, numbers

_OLDEST_PYARROW: Final = 18
_PATIENCE_S: Final = 30.0
_ASK: Final = """
import importlib.util as found, platform
print(platform.python_version(), *(one for one in ("eos", "pyarrow") if found.find_spec(one) is None))
"""


def machine(environment: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Look at this machine. Args: the environment variables that the driver has."""
    spark = capabilities.installed()
    yield versions(platform.python_version(), spark)
    yield pyarrow(_installed("pyarrow"))
    yield pulsar_client(_installed("pulsar-client"))
    yield checksums(google_crc32c.implementation)
    if spark is not None:
        yield workers(environment)


def versions(python: str, spark: str | None) -> Check:
    """Say how far this Python and this Spark were tried. Args: their versions; None: Spark is not installed here."""
    about = "Python and Spark"
    if spark is None:
        said = "PySpark is not installed here, so nothing is known of the job's. Run eos doctor where its driver runs."
        return unknown(about, said)
    ours = f"Python {python}, Spark {spark}"
    if capabilities.minor(spark) < capabilities.OLDEST:
        oldest = ".".join(map(str, capabilities.OLDEST))
        said = f"{ours}: Spark older than {oldest} is not supported. Install pyspark {oldest} or newer."
        return care(about, said)
    whole = SPARK.get((minor(python), minor(spark)))
    if whole:
        return good(about, f"{ours}: every test runs with these.")
    tried = "was tried in part only" if whole is False else "was not tried"
    return unknown(about, f"{ours}: this combination {tried}, see docs/reference/versions.md.")


def pyarrow(ours: str | None) -> Check:
    """Say how far this version of pyarrow was tried. Args: the version; None: it is not installed."""
    about = "pyarrow"
    if ours is None or numbers(ours) < (_OLDEST_PYARROW,):
        had = "pyarrow is not installed here" if ours is None else f"pyarrow {ours}"
        newer = f'pip install "pyarrow>={_OLDEST_PYARROW}"'
        return care(about, f"{had}: rows reach the sink as its record batches. Install {newer}")
    return _tried(about, ours, "")


def pulsar_client(ours: str | None) -> Check:
    """Say how far this version of Pulsar's official client was tried. Args: the version; None: it is not installed."""
    about = "pulsar-client"
    if ours is None:
        return good(about, "pulsar-client is not installed here. Neither sink nor source needs it.")
    return _tried(about, ours, " Neither sink nor source uses it. It matters only to readers that use it.")


def _tried(package: str, ours: str, besides: str) -> Check:
    tried = PACKAGES[package]
    if minor(ours) == minor(tried):
        return good(package, f"{package} {ours}: every test runs with {tried}.{besides}")
    said = f"{package} {ours}: the tests run with {tried} alone, see docs/reference/versions.md.{besides}"
    return unknown(package, said)


def checksums(implementation: str) -> Check:
    """Say how CRC32C is computed. Args: `google_crc32c.implementation`, "c" or "python"."""
    about = "CRC32C"
    if implementation == "c":
        return good(about, "Checksums are computed by compiled code.")
    said = (
        "google-crc32c has no compiled code here and computes each checksum in Python, which makes a sink "
        "many times slower. Install its wheel: pip install --force-reinstall --only-binary :all: google-crc32c"
    )
    return care(about, said)


def workers(environment: Mapping[str, str]) -> Check:
    """Say whether Spark's workers get this Python, and find what they need. Args: the driver's environment."""
    about = "Python of workers"
    named = environment.get("PYSPARK_PYTHON")
    what = f"PYSPARK_PYTHON={named}" if named else "PYSPARK_PYTHON is not set, so Spark starts python3"
    path = shutil.which(named or "python3", path=environment.get("PATH"))
    if path is None:
        return care(about, f"{what}, and there is no such program here. Set PYSPARK_PYTHON to a Python with eos.")
    try:
        done = subprocess.run(  # elsewhere, since Python finds what lies in the folder that it is started in
            [path, "-c", _ASK], cwd="/", capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
        python, *missing = done.stdout.split()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return care(about, f"{what}, and {path} does not run: {error}. Set PYSPARK_PYTHON to a Python with eos.")
    ours = platform.python_version()
    if minor(python) != minor(ours):
        said = (
            f"{what}: Python {python}, and the driver's is {ours}. Spark refuses workers of another minor version. Set "
            "PYSPARK_PYTHON to the same one."
        )
        return care(about, said)
    if missing:
        said = (
            f"{what}, and {path} has no {' and no '.join(missing)}. Set PYSPARK_PYTHON to a Python with eos, or ship "
            "it to the executors."
        )
        return care(about, said)
    where = "Only this machine was looked at. Executors elsewhere need the same."
    return good(about, f"{what}: Python {python}, with eos. {where}")


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
