"""Names and numbers of rows that are written with `guarantee="deduplicated"`, and what is known to be stored of them.

Each writer has a producer name of its own on every physical topic: of the sink, the write and the task. The broker lets
in one producer of a name at a time. A row's sequence id is the batch's id in the upper 31 bits, and the row's number
among those that this writer sends to this physical topic in the lower 32. So

- what is stored of a batch can be found, and its rows be told from one another, by reading the topic;
- the sequence ids of a name rise, so that its newest one, which the broker tells to whoever opens the name, says
  whether anything was stored under it since the topic was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

DRIVER = "driver"
"""The place of the writer in the driver; that of a task is Spark's number of its partition."""

_ROWS = 32  # bits of a row's number


class Kept(NamedTuple):
    """Rows of one writer that one physical topic has of a batch: its first ones.

    Attributes:
        rows: how many.
        digest: of them, see `eos.delivery.digest`.
    """

    rows: int
    digest: str


Stored = Mapping[str, Mapping[str, Kept]]
"""{place of a writer: {physical topic: what it has}}, of one write."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """How the rows of one write of a batch are named and numbered.

    Attributes:
        sink: its name.
        batch_id: of the batch.
        write: its place among the writes of the batch.
        stored: what is known to be stored of it.
        compares: the rows are compared with those that are stored; nothing is sent.
    """

    sink: str
    batch_id: int
    write: int
    stored: Stored = field(default_factory=dict)
    compares: bool = False

    @property
    def first(self) -> int:
        """The sequence id of each writer's first row on a topic."""
        return first_number(self.batch_id)

    def name(self, place: str) -> str:
        """Return the producer name of a writer."""
        return f"{prefix(self.sink)}{self.write}.{place}"

    def of(self, place: str) -> Mapping[str, Kept]:
        """Return what is stored of a writer."""
        return self.stored.get(place, {})


def first_number(batch_id: int) -> int:
    """Return the lowest sequence id of a batch."""
    return batch_id << _ROWS


def batch_of(sequence_id: int) -> int:
    """Return the batch of a sequence id."""
    return sequence_id >> _ROWS


def prefix(sink: str) -> str:
    """Return what the producer names of a sink begin with."""
    return f"eos-deduplicated-{sink}."


def writer_named(sink: str, name: str) -> tuple[int, str] | None:
    """Return write and place of one of the sink's producer names; None for any other name."""
    before = prefix(sink)
    write, _, place = name.removeprefix(before).partition(".")
    ours = name.startswith(before) and write.isdecimal() and (place == DRIVER or place.isdecimal())
    return (int(write), place) if ours else None
