"""The input of a drill as it grows: one more file every so often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from statestore.drills.judge.rows import write_input

ROWS = 60
"""Rows of a file."""
KEYS = 7
"""The columns by which they are summed up. Each file has all of them."""


class Feeder:
    """Adds a file every `interval_s` seconds, as long as fewer than `ahead` are waiting."""

    def __init__(self, folder: Path, done: Callable[[], int], interval_s: float, ahead: int) -> None:
        """`done` tells how many files the slowest job has committed."""
        self.folder = folder
        self.files = 0
        self._done, self._interval_s, self._ahead = done, interval_s, ahead
        self._paused = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="feeder", daemon=True)
        self._lock = threading.Lock()

    def start(self) -> None:
        """Make the folder, add a first file, and go on."""
        self.folder.mkdir(parents=True)
        self._add()
        self._thread.start()

    def pause(self) -> None:
        """Stop adding. Once this returns, `files` stays as it is until `resume`."""
        with self._lock:
            self._paused = True

    def resume(self) -> None:
        """Go on."""
        with self._lock:
            self._paused = False

    def stop(self) -> None:
        """Stop adding, for good."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _feed(self) -> None:
        while not self._ended.wait(self._interval_s):
            with self._lock:
                if not self._paused and self.files < self._done() + self._ahead:
                    self._add()

    def _add(self) -> None:
        self.files += 1  # before a job can have it
        write_input(self.folder, self.files - 1, ROWS, time.time_ns() // 1_000_000, keys=KEYS)
