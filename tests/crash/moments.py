"""Observers that do something at a chosen moment of the protocol. Picklable, so tasks carry them too."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eos.pulsar.net.connection import Connection
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.frames import FrameDecoder
from eos.steps import Phase, Step
from tests.waiting import until

PATIENCE_S = 900.0


@dataclass(frozen=True)
class Moment:
    """A step and a phase of it, in one batch or in any."""

    step: Step
    phase: Phase
    batch_id: int | None = None

    def is_at(self, step: Step, phase: Phase, batch_id: int | None) -> bool:
        return (step, phase) == (self.step, self.phase) and self.batch_id in (None, batch_id)


@dataclass(frozen=True)
class Witness:
    """Writes down each moment and the process it happened in."""

    path: str

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        with open(self.path, "a") as file:
            file.write(json.dumps([os.getpid(), step, phase, batch_id]) + "\n")

    def pids(self, step: Step, batch_id: int) -> set[int]:
        """Return the processes that took this step in this batch."""
        seen = [json.loads(line) for line in Path(self.path).read_text().splitlines()]
        return {pid for pid, at, _, batch in seen if (at, batch) == (step, batch_id)}


@dataclass(frozen=True)
class KillWorker:
    """SIGKILL the Python worker that is the first to come to the moment; never the driver."""

    moment: Moment
    folder: str
    driver: int

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if self.moment.is_at(step, phase, batch_id) and os.getpid() != self.driver and first(self.folder, "killed"):
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Gate:
    """Stops the process that is the first to come to the moment until the test opens the gate."""

    moment: Moment
    folder: str

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        if self.moment.is_at(step, phase, batch_id) and first(self.folder, "reached"):
            wait_for(Path(self.folder, "open"))

    def wait(self) -> int:
        """Wait until a process stands before the gate, and return its pid."""
        wait_for(Path(self.folder, "reached"))
        return int(Path(self.folder, "reached").read_text())

    def open(self) -> None:
        Path(self.folder, "open").touch()


@dataclass(frozen=True)
class LateTask:
    """Lets one Python worker push its data frame once more when the driver has committed the batch.

    The frame goes past all that the worker's own client would say: it stands for a process that stood still in the
    middle of a send, and wakes up.
    """

    batch_id: int
    folder: str
    driver: int

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        at = (step, phase)
        if batch_id != self.batch_id:
            return
        if os.getpid() == self.driver:
            if at == (Step.END_ANSWERED, "after"):
                first(self.folder, "committed")
                wait_for(Path(self.folder, "pushed"))
        elif at == (Step.FIRST_SEND, "before") and first(self.folder, "zombie"):
            self._keep_frames()

    def _keep_frames(self) -> None:
        send = Connection.send

        def send_and_keep(connection: Connection, buffers: Sequence[Buffer]) -> None:
            frame = b"".join(bytes(buffer) for buffer in buffers)
            send(connection, buffers)
            if FrameDecoder().feed(frame)[0].command.HasField("send"):
                Connection.send = send  # type: ignore[method-assign]
                threading.Thread(target=push, args=(connection, frame), daemon=True).start()

        def push(connection: Connection, frame: bytes) -> None:
            wait_for(Path(self.folder, "committed"))
            send(connection, [frame])
            first(self.folder, "pushed")

        Connection.send = send_and_keep  # type: ignore[assignment, method-assign]


def first(folder: str, name: str) -> bool:
    """Put this process's pid into a new file; False when the file is there already."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    mine = Path(folder, f"{name}.{os.getpid()}")
    mine.write_text(str(os.getpid()))
    try:
        os.link(mine, Path(folder, name))
    except FileExistsError:
        return False
    return True


def wait_for(path: Path) -> None:
    until(path.exists, f"waited {PATIENCE_S:g} s for {path}", PATIENCE_S)
