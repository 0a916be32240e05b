"""A process that a test starts, waits for, and kills with all that it has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

import psutil

from eos.closing import Closing
from eos.local.process import kill_group
from statestore.drills.processes import below, kill_all
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 800.0
"""Less than a test may take by default: else pytest would end it without the end of the log."""
_SHOWN = 20_000
"""Characters of a log: the first line of an error of Spark's comes before hundreds of its stack."""
_END_S = 10.0

Answer = TypeVar("Answer")


def python(module: str, *arguments: object, program: str = sys.executable) -> list[str]:
    """Return the command that runs a module by a Python. A dataclass or a mapping among its arguments becomes JSON."""
    return [program, "-m", module, *map(_text, arguments)]


def _text(argument: Any) -> str:
    if is_dataclass(argument) and not isinstance(argument, type):
        argument = asdict(argument)
    return json.dumps(argument) if isinstance(argument, Mapping) else str(argument)


class ChildProcess(Closing):
    """A process in a session of its own, so that no signal to the test reaches it. A block's end kills it.

    Attributes:
        log: what it has written to standard error, in a file that no other process writes.
        pid: its own, which is its process group's too.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        home: Path | None = None,
        inherited: Mapping[str, str] | None = None,
        takes_input: bool = False,
    ) -> None:
        """Start it.

        Args:
            command: see `python`.
            log: is there such a file, then a number is added to its name. Standard output goes beside it.
            environment: what the process has besides what it inherits, and besides the tests as importable modules.
            home: its working directory. Default: the log's folder.
            inherited: default: this process's whole environment.
            takes_input: its standard input is `stdin`. Else there is none.
        """
        places = chain([log], (log.with_stem(f"{log.stem}-{number}") for number in count(2)))
        self.log = next(place for place in places if not place.exists())
        self._out = self.log.with_suffix(".out")
        with self.log.open("w") as errors, self._out.open("w") as out:
            self._process = subprocess.Popen(
                command,
                cwd=home or log.parent,
                env={
                    **(os.environ if inherited is None else inherited),
                    "PYTHONPATH": str(ROOT),
                    "PYSPARK_PYTHON": sys.executable,
                    **(environment or {}),
                },
                stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._paused: list[int] = []

    @property
    def stdin(self) -> Any:
        """Its standard input, a text stream."""
        return self._process.stdin

    @property
    def alive(self) -> bool:
        """Whether it runs, or is paused."""
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """What it has written to standard output."""
        return self._out.read_text(errors="replace")  # it may be in the middle of a letter

    @property
    def logged(self) -> str:
        """What it has written to standard error."""
        return self.log.read_text(errors="replace")

    def until(self, ask: Callable[[], Answer], what: object = "", patience_s: float = PATIENCE_S) -> Answer:
        """Ask as `tests.waiting.until` does. The process must live meanwhile. A failure shows the end of its log."""

        def asked() -> Answer:
            assert self.alive, f"the process has ended with {self._process.returncode}:\n{self.tail()}"
            return ask()

        return until(asked, lambda: f"{what() if callable(what) else what}:\n{self.tail()}", patience_s, pause_s=0.05)

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for its end and return the exit code; negative: the signal that ended it."""
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the process did not end within {patience_s:g} s:\n{self.tail()}") from None

    def finish(self, patience_s: float = PATIENCE_S) -> None:
        """Wait for its end, which must be a good one."""
        code = self.wait(patience_s)
        assert code == 0, f"the process has ended with {code}:\n{self.tail()}"

    def answer(self, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait for its end, which must be a good one, and return the JSON that it wrote last."""
        self.finish(patience_s)
        return dict(json.loads(self.output.splitlines()[-1]))

    def family(self) -> list[int]:
        """The pids of it and of all that come from it. Spark's Python workers have process groups of their own."""
        return [self.pid, *(one.pid for one in below(self._process))]

    def pause(self) -> None:
        """SIGSTOP all of it, until each thread stands still: it keeps its connections and says nothing.

        Its group is stopped at once, and all else after that, parents first. A child that is made meanwhile is stopped
        too, and one that has ended is let go.
        """
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGSTOP)
        while new := [one for one in self.family() if one not in self._paused]:
            for one in new:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGSTOP)
                until(partial(_stands_still, one))
            self._paused += new

    def resume(self) -> None:
        """Let all of it go on."""
        for one in reversed(self._paused):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)
        self._paused = []

    def kill(self) -> None:
        """SIGKILL all of it, and wait until nothing is left."""
        family = below(self._process)
        kill_group(self._process)
        kill_all(family)
        self._process.wait()
        psutil.wait_procs(family, timeout=_END_S)
        if self.stdin is not None:
            with suppress(BrokenPipeError):
                self.stdin.close()

    def tail(self) -> str:
        """Return the end of its log, after the end of its output."""
        return f"{self.output[-2_000:]}\n{self.logged[-_SHOWN:]}"

    def close(self) -> None:
        """Kill it, as `kill` does."""
        self.kill()


def _stands_still(pid: int) -> bool:
    """Whether each thread of a process is stopped or over: a thread's state comes after the name in brackets."""
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread has just ended, or the whole process
        return not psutil.pid_exists(pid)
    return all(stat.rpartition(")")[2].split()[0] in "TZX" for stat in stats)
