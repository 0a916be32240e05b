"""What is committed is decided without a network: no module of the package loads one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import eos.commit

MODULES = ["eos.commit", *(f"eos.commit.{path.stem}" for path in Path(eos.commit.__path__[0]).glob("[a-z]*.py"))]
NETWORK = ("eos.pulsar.net", "eos.pulsar.protocol", "socket", "ssl", "asyncio", "httpx", "pyspark")


@pytest.mark.parametrize("module", MODULES)
def test_a_fresh_process_that_imports_it_has_no_sockets(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith({NETWORK})), sep=',')"
    # Coverage, where it measures processes that tests start, loads sockets of its own.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    assert ran.stdout == "\n"
