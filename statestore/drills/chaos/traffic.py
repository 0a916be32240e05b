"""The input of the job from topic to topic: two writers of the official clients, each in a process of its own.

One uses transactions (`Transactions.java`), one does not (`plain_writer`). They reach the brokers past the proxies, so
that what the faults to the links hit is the job alone. Each gets `pause` and `resume` by lines on its standard input,
ends with it, and says a line when a block of rows is over: `committed`, `aborted` or `in-doubt`, with its first number
and the one after the last. It says `paused`, when it is told to pause and has nothing open.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from eos.local import checks, jars
from eos.local.jvm import QUICK_START
from eos.local.process import kill_group
from statestore.drills.judge.copies import Block, CopyOutcome
from statestore.errors import Unavailable

BACKLOG = 25_000
"""Rows that each writer has sent before the job starts."""
RATE = 1_000
"""Rows a second of each writer after that."""
_PATIENCE_S = 180.0
_JAVA = Path(__file__).with_name("Transactions.java")


class TrafficWriter:
    """A writer's process."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        """`command` is run with the output for people in `log`."""
        self.name = name
        self._blocks: list[Block] = []
        self._paused = False
        self._changed = threading.Condition()
        self._log = log
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._thread = threading.Thread(target=self._listen, name=f"writer-{name}", daemon=True)
        self._thread.start()

    @property
    def blocks(self) -> list[Block]:
        """The rows that it has sent so far."""
        with self._changed:
            return list(self._blocks)

    def await_rows(self, rows: int) -> None:
        """Wait until it has sent so many rows. Raises Unavailable."""
        self._wait(lambda: bool(self._blocks) and self._blocks[-1].end >= rows, f"send {rows} rows")

    def pause(self) -> None:
        """Let it end what it has open, and send nothing more. Raises Unavailable."""
        with self._changed:
            self._paused = False
        self._tell("pause")
        self._wait(lambda: self._paused, "pause")

    def resume(self) -> None:
        """Let it go on."""
        self._tell("resume")

    def stop(self) -> None:
        """Let it end what it has open, and end. Raises Unavailable: it died before, or does not end."""
        if self._process.poll() is not None:
            raise Unavailable(f"The writer {self.name} has died. See {self._log}.")
        self._close_input()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"The writer {self.name} does not end within {_PATIENCE_S:g} s. See {self._log}."
            ) from None
        self._thread.join()

    def kill(self) -> None:
        """SIGKILL it, and all of its group."""
        kill_group(self._process)
        self._process.wait()
        self._thread.join()
        self._close_input()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died, and the thread that waits for it must know
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()

    def _wait(self, true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        with self._changed:
            while not true():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise Unavailable(f"The writer {self.name} did not {what}; see {self._log}.")
                self._changed.wait(0.2)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            words = line.split()
            with self._changed:
                if words == ["paused"]:
                    self._paused = True
                elif len(words) == 3 and words[0] in set(CopyOutcome):
                    self._blocks.append(Block(self.name, int(words[1]), int(words[2]), CopyOutcome(words[0])))
                self._changed.notify_all()


class Traffic:
    """Both writers together."""

    def __init__(self, writers: Sequence[TrafficWriter]) -> None:
        self._writers = writers

    @classmethod
    def to(cls, service_url: str, topic: str, log: Path, scratch: Path) -> Traffic:
        """Start both on a topic, and return once the backlog is there; what Java writes besides goes into `scratch`.

        Raises:
            LocalError: there is no JDK.
            Unavailable: they don't get there.
        """
        words = [service_url, topic, str(BACKLOG), str(RATE)]
        flags = ["-Xmx192m", *QUICK_START, f"-Djava.io.tmpdir={scratch}"]
        java = [str(checks.java()), *flags, "-cp", jars.classpath(), str(_JAVA), *words]
        python = [sys.executable, "-m", "statestore.drills.chaos.plain_writer", *words]
        traffic = cls([])
        try:
            traffic._writers = [TrafficWriter("plain", python, log), TrafficWriter("transactional", java, log)]
            for writer in traffic._writers:
                writer.await_rows(BACKLOG)
        except BaseException:
            traffic.kill()
            raise
        return traffic

    @property
    def blocks(self) -> list[Block]:
        """The rows that they have sent so far."""
        return [block for writer in self._writers for block in writer.blocks]

    @property
    def promised(self) -> int:
        """Rows that they know to be committed."""
        return sum(block.rows for block in self.blocks if block.outcome is CopyOutcome.COMMITTED)

    def pause(self) -> None:
        """Let both end what they have open, and send nothing more."""
        for writer in self._writers:
            writer.pause()

    def resume(self) -> None:
        """Let both go on."""
        for writer in self._writers:
            writer.resume()

    def stop(self) -> None:
        """Let both end what they have open, and end."""
        for writer in self._writers:
            writer.stop()

    def kill(self) -> None:
        """SIGKILL both, if they run."""
        for writer in self._writers:
            writer.kill()
