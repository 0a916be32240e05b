"""The build of the site: it reaches no network, also where the builder would catch the error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "build_site.py"


def _build(folder: Path, builder: str) -> subprocess.CompletedProcess[str]:
    """Build with a stand-in for mkdocs."""
    (folder / "mkdocs").mkdir()
    (folder / "mkdocs" / "__init__.py").touch()
    (folder / "mkdocs" / "__main__.py").write_text(builder)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, str(TOOL)], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_build_without_a_network(tmp_path: Path) -> None:
    done = _build(tmp_path, "import sys\nassert sys.argv[1:] == ['build']")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_build_that_fails(tmp_path: Path) -> None:
    assert _build(tmp_path, "raise SystemExit(3)").returncode == 3


@pytest.mark.parametrize(
    "asking",
    [
        "socket.getaddrinfo('example.org', 443)",
        "socket.create_connection(('127.0.0.1', 9), timeout=1)",
        "urllib.request.urlopen('https://127.0.0.1:9/a.js')",
    ],
)
def test_a_build_that_asks_for_a_network_and_goes_on(tmp_path: Path, asking: str) -> None:
    done = _build(
        tmp_path, f"import contextlib, socket, urllib.request\nwith contextlib.suppress(OSError):\n    {asking}"
    )
    assert done.returncode == 1
    assert "asked for a network: socket." in done.stderr
