"""The job from topic to topic: its input that grows all the while, and independent readers of both its ends."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from statestore.drills.chaos.job import JobSpec
from statestore.drills.chaos.supervisor import Supervisor
from statestore.drills.chaos.traffic import Traffic
from statestore.drills.journal import AccountEvent
from statestore.drills.judge import copies, oracle
from statestore.drills.judge.oracle import LiveReaders
from statestore.drills.later_transactions import end_later_transactions

COPIES = "copies"
"""The job's name."""
_DRAIN_S = 90.0


class EndToEnd:
    """A context manager: within it the input grows. At its end the writers and the readers are gone."""

    def __init__(self, service_url: str, spec: JobSpec, log: Path, scratch: Path) -> None:
        """The topics must keep what is acknowledged.

        Args: past the proxies; the job; where what the writers have to say goes; a folder for their own use.
        """
        self._service_url, self._spec, self._log, self._scratch = service_url, spec, log, scratch
        self._given, self.output = (
            LiveReaders(service_url, topic, 1, copies.parse, copies.PackedRows, acknowledge=True)
            for topic in (spec.source, spec.topic)
        )
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._given)
            stack.enter_context(self.output)
            self._traffic = Traffic.to(self._service_url, self._spec.source, self._log, self._scratch)
            stack.callback(self._traffic.kill)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def given(self) -> int:
        """Rows of the input that a reader has seen so far: committed ones."""
        return self._given.progress.rows

    @property
    def arrived(self) -> int:
        """Rows of the output that a reader has seen so far."""
        return self.output.progress.rows

    def pause(self) -> None:
        """Stop the input from growing. No transaction is open on it then."""
        self._traffic.pause()

    def resume(self) -> None:
        """Let it grow again."""
        self._traffic.resume()

    def drain(self, supervisor: Supervisor) -> None:
        """End the input, and wait until the job has copied it. If it doesn't, the account says what is missing."""
        self._traffic.stop()
        end_later_transactions(self._service_url, self._spec.source)
        promised, deadline = self._traffic.promised, time.monotonic() + _DRAIN_S

        def done() -> bool:
            return promised <= self.given <= self.arrived or time.monotonic() > deadline

        supervisor.wait(done, f"{self._spec.job} to copy its input", 2 * _DRAIN_S)

    def account(self) -> AccountEvent:
        """Account for the output. The job must have stopped: reading leaves a mark in its input, to be copied too."""
        found = oracle.judge_copies(
            self._spec.job, self._service_url, self._spec.topic, self._given, self._traffic.blocks
        )
        return AccountEvent(**vars(found))
