"""The journal of a drill: what happened, one JSON object a line, each line on disk before the next thing happens.

Everything else that is said about a drill, its report too, is derived from this file: `read`, then
`statestore.drills.report.summary`. A drill that dies leaves a journal that can be read up to the last line it wrote.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from eos.addresses import without_user
from eos.closing import Closing
from statestore.drills.judge import findings
from statestore.errors import InvalidInput, NotFound

DrillKind = Literal["chaos", "rehearsal", "shadow", "total-loss"]


@dataclass(frozen=True, kw_only=True)
class _Happened:
    """The fields of every event.

    Attributes:
        t: seconds since the drill began, by the monotonic clock. `Journal.write` sets it.
    """

    t: float = 0.0


@dataclass(frozen=True)
class PlannedFault:
    """A fault that a plan asks for: its number from 1, its kind, its family."""

    n: int
    kind: str
    family: str


@dataclass(frozen=True)
class Targets:
    """The user's expectations: seconds until the first batch after a fault, and rows that may be waiting meanwhile."""

    recover_s: float
    data_at_risk_rows: int


@dataclass(frozen=True)
class Began(_Happened):
    """The drill began. The first line of every journal.

    Attributes:
        drill: which one.
        at: wall time, ISO 8601 with its offset.
        rerun: one shell line that does the same again.
        seed: of the plan; None for a drill without chance in it.
        versions: name of a part, and its version.
        machine: "cores", "memory_gb" and what else tells how fast it is.
        plan: the faults to be done, in their order.
    """

    event: Literal["began"] = field(default="began", kw_only=True)
    drill: DrillKind
    at: str
    rerun: str
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str | int | float] = field(default_factory=dict)
    targets: Targets = Targets(recover_s=60.0, data_at_risk_rows=100_000)
    plan: tuple[PlannedFault, ...] = ()


@dataclass(frozen=True)
class JobEvent(_Happened):
    """A job that the drill runs or looks at. Its name is what other events call it by.

    Attributes:
        checkpoint: its address, without a user: the journal and its report are handed on.
    """

    event: Literal["job"] = field(default="job", kw_only=True)
    job: str
    stateful: bool
    topic: str
    checkpoint: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "checkpoint", without_user(self.checkpoint))


@dataclass(frozen=True)
class Fault(_Happened):
    """A fault of the plan was done, just now. `detail` says what it was done to."""

    event: Literal["fault"] = field(default="fault", kw_only=True)
    n: int
    kind: str
    family: str
    detail: str = ""


@dataclass(frozen=True)
class Detected(_Happened):
    """Fault `n` was noticed by what it hit, or by who watches that."""

    event: Literal["detected"] = field(default="detected", kw_only=True)
    n: int
    detail: str = ""


@dataclass(frozen=True)
class FencedEvent(_Happened):
    """The processes that fault `n` left can't write any longer."""

    event: Literal["fenced"] = field(default="fenced", kw_only=True)
    n: int
    detail: str = ""


@dataclass(frozen=True)
class Recovered(_Happened):
    """The first batch after fault `n` was committed."""

    event: Literal["recovered"] = field(default="recovered", kw_only=True)
    n: int
    detail: str = ""


@dataclass(frozen=True)
class CaughtUp(_Happened):
    """The output has all input that was there when fault `n` came."""

    event: Literal["caught_up"] = field(default="caught_up", kw_only=True)
    n: int
    detail: str = ""


@dataclass(frozen=True)
class Sample(_Happened):
    """How far a job is, about once a second.

    Attributes:
        rows_in: rows given to the job so far.
        rows_out: rows that a live reader has read so far.
        latency_ms: milliseconds from the input of the newest row read to its reading; None before the first.
    """

    event: Literal["sample"] = field(default="sample", kw_only=True)
    job: str
    rows_in: int
    rows_out: int
    latency_ms: float | None = None


@dataclass(frozen=True)
class ReadersEvent(findings.Readers, _Happened):
    """The findings of the readers of a job's output while it ran."""

    event: Literal["readers"] = field(default="readers", kw_only=True)


@dataclass(frozen=True)
class TransactionsEvent(_Happened):
    """The outcome of a job's transactions, in the whole drill.

    Attributes:
        unknown_resolved: commits in doubt: sent and never answered with success, so that the sink's log had to tell.
        replayed: batches that Spark handed over again after a restart, and that were skipped: they were committed.
        handed_again: batches that Spark handed over again, also those that had to be written again.
    """

    event: Literal["transactions"] = field(default="transactions", kw_only=True)
    job: str
    opened: int
    committed: int
    aborted: int
    unknown_resolved: int
    replayed: int
    handed_again: int = 0


@dataclass(frozen=True)
class StateEvent(_Happened):
    """The state of a job at a batch: versions kept, and how fast it was restored, in MB (10^6 bytes) a second."""

    event: Literal["state"] = field(default="state", kw_only=True)
    job: str
    batch: int
    versions: int
    restore_mb_s: float | None = None


@dataclass(frozen=True)
class AccountEvent(findings.Account, _Happened):
    """The judge's findings in a job's output."""

    event: Literal["account"] = field(default="account", kw_only=True)


@dataclass(frozen=True)
class CheckEvent(_Happened):
    """Another expectation, such as "a damaged checkpoint is refused", and whether it held."""

    event: Literal["check"] = field(default="check", kw_only=True)
    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class StepEvent(_Happened):
    """A step of a rehearsal, and how long it took."""

    event: Literal["step"] = field(default="step", kw_only=True)
    name: str
    seconds: float
    detail: str = ""


@dataclass(frozen=True)
class NotTested(_Happened):
    """The facts that the drill doesn't show, and why not."""

    event: Literal["not_tested"] = field(default="not_tested", kw_only=True)
    what: str
    why: str


@dataclass(frozen=True)
class Ended(_Happened):
    """The drill ended by itself, or was interrupted. The last line, unless the drill died."""

    event: Literal["ended"] = field(default="ended", kw_only=True)
    interrupted: bool = False
    reason: str = ""


Event = (
    Began
    | JobEvent
    | Fault
    | Detected
    | FencedEvent
    | Recovered
    | CaughtUp
    | Sample
    | ReadersEvent
    | TransactionsEvent
    | StateEvent
    | AccountEvent
    | CheckEvent
    | StepEvent
    | NotTested
    | Ended
)
E = TypeVar("E", bound=Event)
_LINE: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


class Journal(Closing):
    """Writes events, from any thread, each as a line that is with the operating system before `write` returns.

    Use it as a context manager: it closes its file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._start = time.monotonic()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("x", encoding="utf-8")
        except FileExistsError:
            raise InvalidInput(
                f"{path} is there already, and a journal is never written over. Name another file."
            ) from None

    @classmethod
    def create(cls, path: Path, began: Began) -> Journal:
        """Make the file and its folder, and write the first line.

        Raises:
            InvalidInput: the file is there already.
        """
        journal = cls(path)
        journal.write(began)
        return journal

    def write(self, event: E) -> E:
        """Write an event that happens now; return it with its `t`."""
        with self._lock:
            stamped = replace(event, t=round(time.monotonic() - self._start, 3))
            self._file.write(_LINE.dump_json(stamped).decode() + "\n")
            self._file.flush()
        return stamped

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> list[Event]:
    """Return the events of a journal. A last line that was not written to its end is left out.

    Raises:
        NotFound: there is no such file.
        InvalidInput: another line is not an event, or the first one isn't `began`.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"There is no journal at {path}.") from None
    *lines, _torn = text.split(b"\n")
    events = [_event(path, number, line) for number, line in enumerate(lines, start=1)]
    if not events or not isinstance(events[0], Began):
        raise InvalidInput(f"{path} is not the journal of a drill. Its first line must be the event `began`.")
    return events


def _event(path: Path, number: int, line: bytes) -> Event:
    try:
        return _LINE.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the line"
        raise InvalidInput(f"Line {number} of {path} is not an event of a drill: {place}: {first['msg']}.") from error
