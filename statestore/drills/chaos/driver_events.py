"""The events of a drill's driver: one JSON object a line on its standard output. Tasks import this too."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path

from eos.json_reader import read_json
from eos.steps import Phase, Step

_POLL_S = 0.02

_lock = threading.Lock()


class Word(StrEnum):
    """The kinds of events."""

    READY = "ready"  # the Spark session is up
    STARTED = "started"  # a job's query runs
    FENCED = "fenced"  # a job's sink has thrown out the driver before it
    BEGAN = "began"  # Spark has handed over a batch
    OPENED = "opened"  # a transaction is open for it
    SENT = "sent"  # the driver has asked for its commit
    ANSWERED = "answered"  # and knows that it is committed
    HELD = "held"  # it stands still at a step, as it was told to
    TRIED = "tried"  # a try failed; the text says why
    COMMITTED = "committed"  # it is in the output
    STOPPED = "stopped"  # a job's query was stopped; all its input is committed
    FAILED = "failed"  # a job's query ended with an error
    STATE = "state"  # the rows of a job's state


@dataclass(frozen=True, slots=True)
class DriverEvents:
    """One line.

    Attributes:
        batch: the batch it is about; -1: none.
        rows: of COMMITTED: how many rows this run has written so far.
        skipped: the batch was in the output already.
        state: of STATE, key, count and sum.
    """

    word: Word
    job: str = ""
    batch: int = -1
    text: str = ""
    rows: int = 0
    skipped: bool = False
    state: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def parse(cls, line: str) -> DriverEvents | None:
        """Read a line; None for what Spark or Java have printed."""
        with suppress(ValueError, TypeError):
            held = read_json(line)
            if isinstance(held, dict) and held.keys() == {field.name for field in fields(cls)}:
                state = tuple((str(key), int(count), int(total)) for key, count, total in held["state"])
                return cls(**{**held, "word": Word(held["word"]), "state": state})
        return None


def keep_standard_output() -> None:
    """Keep standard output for what is said: what children of this process print, such as a JVM, goes to its errors.

    Else a line of theirs that isn't ended could have a line of this driver at its end, and could not be read.
    """
    sys.stdout = os.fdopen(os.dup(1), "w")  # no child gets the copy
    os.dup2(2, 1)


def say(said: DriverEvents) -> None:
    """Print it as one line."""
    with _lock:
        sys.stdout.write(json.dumps(asdict(said)) + "\n")
        sys.stdout.flush()


_SAID: Mapping[tuple[Step, Phase], Word] = {
    (Step.TAKEOVER, "after"): Word.FENCED,
    (Step.OPEN, "after"): Word.OPENED,
    (Step.END_SENT, "after"): Word.SENT,
    (Step.END_ANSWERED, "after"): Word.ANSWERED,
}


@dataclass(frozen=True, slots=True)
class Watch:
    """Observes a sink: says what it does, and holds a batch at a step of its driver when it is told to.

    Attributes:
        hold: a file that names the step, as `order_of` does. It is renamed when the step is there (see `held_by`), and
            the batch stands still until it is removed.
    """

    job: str
    hold: str

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        """See `eos.steps.Observer`."""
        batch = -1 if batch_id is None else batch_id
        if (step, phase) in _SAID:
            say(DriverEvents(_SAID[step, phase], self.job, batch))
        hold = Path(self.hold)
        with suppress(FileNotFoundError):
            if hold.read_text() == order_of(step, phase):
                held = hold.rename(held_by(hold))
                say(DriverEvents(Word.HELD, self.job, batch))
                while held.exists():
                    time.sleep(_POLL_S)


def order_of(step: Step, phase: Phase) -> str:
    """Return what stands in the file that holds a batch there."""
    return f"{phase} {step}"


def held_by(hold: Path) -> Path:
    """Return the file that a batch, held by the order in the file `hold`, waits for to be removed."""
    return hold.with_suffix(".held")
