"""The command itself: its version, what its help must not load, and what it says to a program."""

from __future__ import annotations

import subprocess
import sys

import pytest

import eos

HEAVY = ("pyarrow", "pyspark", "numpy", "pandas", "httpx", "google.protobuf", "eos.pulsar.net.client")
LOADED = "import sys; from eos.cli.app import typer_app; print([name for name in sys.argv[1:] if name in sys.modules])"


def test_the_command_is_ready_without_what_its_verbs_need() -> None:
    """It is asked for help far more often than for anything else."""
    done = subprocess.run([sys.executable, "-c", LOADED, *HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["eos", "statestore"])
def test_the_version_is_that_of_the_installation(package: str) -> None:
    done = subprocess.run([sys.executable, "-m", package, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{package} {eos.__version__}\n"
