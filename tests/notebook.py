"""Blocks of Python that run one after another in one process, as in a notebook, each with names of its own.

    python -m tests.notebook       (reads a line of JSON for each block: {"code": …, "end": …})

Most of a block's time would be the start of its JVM. When a block is over, its file `end` has what it raised.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from tests.child_process import ChildProcess, python


class Notebook:
    """The process, and what the blocks print and raise.

    Args:
        home: the folder that the blocks run in.
        folder: one that does not exist yet, for the logs.
        environment: what the process has besides this one's.
    """

    def __init__(self, home: Path, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir()
        self._folder = folder
        self._blocks = 0
        self._process = ChildProcess(python("tests.notebook"), folder / "log", environment, home=home, takes_input=True)

    def run(self, code: str) -> str:
        """Run a block to its end, which must be a good one. Returns what it printed and logged."""
        printed, logged = len(self._process.output), len(self._process.logged)
        end = self._folder / f"block-{self._blocks}"
        self._blocks += 1
        self._process.stdin.write(json.dumps({"code": code, "end": str(end)}) + "\n")
        self._process.stdin.flush()
        self._process.until(end.exists)
        raised = end.read_text()
        assert not raised, f"{code}\n{raised}\n{self._process.tail()}"
        return self._process.output[printed:] + self._process.logged[logged:]

    def close(self) -> None:
        """End the process and its JVM."""
        self._process.kill()


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
