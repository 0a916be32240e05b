"""Blocks of Python that run one after another in one process, as in a notebook, each with names of its own.

    python -m tests.notebook       (reads a line of JSON for each block: {"code": …, "end": …})

Most of a block's time would be the start of its JVM. When a block is over, its file `end` has what it raised.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE_S = 900.0


class Notebook:
    """The process, in a process group of its own. Its JVM belongs to the group too.

    Args:
        home: the folder that the blocks run in.
        folder: an empty one, for what the blocks print and raise.
        environment: what the process has besides this one's.
    """

    def __init__(self, home: Path, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir()
        self._folder = folder
        self._log = folder / "log"
        self._blocks = 0
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.notebook"],
                cwd=home,
                env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def run(self, code: str) -> str:
        """Run a block to its end, which must be a good one. Returns what it printed and logged."""
        before = self._log.stat().st_size
        end = self._folder / f"block-{self._blocks}"
        self._blocks += 1
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"code": code, "end": str(end)}) + "\n")
        self._process.stdin.flush()
        until(lambda: end.exists() or self._process.poll() is not None, self._tail, _PATIENCE_S)
        assert end.exists(), f"the process has ended:\n{self._tail()}"
        raised = end.read_text()
        assert not raised, f"{code}\n{raised}\n{self._tail()}"
        with self._log.open("rb") as log:
            log.seek(before)
            return log.read().decode()

    def close(self) -> None:
        """End the process and its JVM."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _tail(self) -> str:
        return self._log.read_text()[-4_000:]


def main() -> None:
    """Run the blocks that come by standard input, to its end."""
    for line in sys.stdin:
        block = json.loads(line)
        raised = ""
        try:
            exec(block["code"], {"__name__": "__main__"})
        except Exception:
            raised = traceback.format_exc()
        sys.stdout.flush()
        scratch = Path(f"{block['end']}.new")
        scratch.write_text(raised)
        scratch.rename(block["end"])


if __name__ == "__main__":
    main()
