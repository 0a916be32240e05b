"""One batch of `guarantee="deduplicated"`, tried again and again, while writers of earlier tries may live on.

Two writers have a name each, so there are two lines of rows on a topic. A query that is not deterministic brings, at
each try, one of several batches. A try goes as `eos.sinks.deduplicated` tells; at any moment it may stand still, for
ever or until long after, and another one may begin. Writers of a try go their own way, and may die. The topic may lose
what it holds, once it was read. The broker may forget every name; that takes hours, in which no try stands still.

The rows that were ever stored are those that readers found. When a try has ended well, they must be its rows for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from tests.models.numbers_rules import ALL, Rule

Rows = tuple[str, ...]
Batch = tuple[Rows, Rows]

ONE: Final[tuple[Batch, ...]] = ((("a", "b"), ("c",)),)
"""What a deterministic query brings."""
SEVERAL: Final[tuple[Batch, ...]] = (*ONE, (("a",), ("c", "b")), (("c",), ("a", "b")))
"""What another one may bring."""
AS_MANY: Final[tuple[Batch, ...]] = (*ONE, (("a", "c"), ("b",)))
"""What one may bring that has as many rows for each writer, but not the same."""


class Phase(Enum):
    """How far a try has come."""

    BEGUN = auto()
    LOOKING = auto()
    COMPARING = auto()
    SENDING = auto()
    ENDED = auto()  # well
    FAILED = auto()


class Writer(Enum):
    """How far a writer of a try has come."""

    NEW = auto()
    OPEN = auto()
    DONE = auto()
    DEAD = auto()


class Try(NamedTuple):
    """One try: its rows, how many rows of each line it has found, its writers, and how many rows they have sent."""

    phase: Phase
    batch: int
    found: tuple[int, ...] = (0, 0)
    writers: tuple[Writer, ...] = (Writer.NEW, Writer.NEW)
    sent: tuple[int, ...] = (0, 0)


class World(NamedTuple):
    """Everything.

    Attributes:
        noted: the checkpoint says that the batch is begun.
        lines: the rows that were ever stored, by name.
        deleted: how many of each line the topic has no more.
        forgotten: the broker knows no number of the line.
        tries: in the order in which they began.
    """

    noted: bool = False
    lines: tuple[Rows, ...] = ((), ())
    deleted: tuple[int, ...] = (0, 0)
    forgotten: tuple[bool, ...] = (False, False)
    tries: tuple[Try, ...] = ()


@dataclass(frozen=True)
class Numbers:
    """A world to explore.

    Attributes:
        batches: what the query may bring.
        tries: how many there may be.
        late: an earlier try may go on, and a writer of it begin, after a later one has seen that none is connected.
        rules: those that are kept.
    """

    batches: tuple[Batch, ...] = ONE
    tries: int = 3
    late: bool = True
    rules: frozenset[Rule] = ALL

    def start(self) -> World:
        """Nothing has happened."""
        return World()

    def canonical(self, state: World) -> World:
        """Each state stands for itself."""
        return state

    def stuck(self, state: World) -> str | None:
        """A batch may be refused, or its tries used up."""
        return None

    def fault(self, state: World) -> str | None:
        """Readers must have found the rows of a try that has ended well, and no others."""
        for one in state.tries:
            if one.phase is Phase.ENDED and state.lines != self.batches[one.batch]:
                return (
                    f"a try has ended well with {_words(self.batches[one.batch])}; readers find {_words(state.lines)}"
                )
        return None

    def steps(self, state: World) -> Iterator[tuple[str, World]]:
        """Give what may happen next."""
        if len(state.tries) < self.tries and not any(one.phase is Phase.ENDED for one in state.tries):
            for batch in range(len(self.batches)):
                yield f"try {len(state.tries)} begins, with {_words(self.batches[batch])}", self._begin(state, batch)
        for number in range(len(state.tries)):
            yield from self._driver(state, number)
            for line in range(2):
                yield from self._writer(state, number, line)
        yield from self._topic(state)

    def _begin(self, state: World, batch: int) -> World:
        known = state.noted and Rule.NOTE in self.rules
        begun = Try(Phase.BEGUN if known else Phase.SENDING, batch)
        return state._replace(noted=True, tries=(*state.tries, begun))

    def _driver(self, state: World, number: int) -> Iterator[tuple[str, World]]:
        one = state.tries[number]
        match one.phase:
            case Phase.BEGUN:
                if Rule.AWAIT not in self.rules or not _connected(state, number):
                    after = _with(state, number, one._replace(phase=Phase.LOOKING))
                    yield f"try {number} sees no writers", after if self.late else _without_beginners(after, number)
            case Phase.LOOKING:
                stored = tuple(len(rows) for rows in state.lines)
                lines = list(zip(state.deleted, stored, strict=True))
                found = tuple(0 if deleted else count for deleted, count in lines)
                looked = one._replace(phase=Phase.COMPARING, found=found)
                if Rule.PROVEN in self.rules and state.deleted != (0, 0):
                    looked = looked._replace(phase=Phase.FAILED)
                if any(0 < deleted < count for deleted, count in lines):  # rows whose beginning is gone
                    looked = looked._replace(phase=Phase.FAILED)
                yield f"try {number} looks at the topic", _with(state, number, looked)
            case Phase.COMPARING:
                fits = all(
                    state.lines[line][:count] == self.batches[one.batch][line][:count]
                    and count <= len(self.batches[one.batch][line])
                    for line, count in enumerate(one.found)
                )
                if not fits and Rule.COMPARE in self.rules:
                    yield f"try {number} refuses the batch", _with(state, number, one._replace(phase=Phase.FAILED))
                    return
                again = [one.batch] if Rule.KEEP in self.rules else range(len(self.batches))
                for batch in again:
                    sending = one._replace(phase=Phase.SENDING, batch=batch, sent=one.found)
                    yield (
                        f"try {number} compares, and sends {_words(self.batches[batch])}",
                        _with(state, number, sending),
                    )
            case Phase.SENDING:
                if one.writers == (Writer.DONE, Writer.DONE):
                    yield f"try {number} ends well", _with(state, number, one._replace(phase=Phase.ENDED))
            case _:
                pass

    def _writer(self, state: World, number: int, line: int) -> Iterator[tuple[str, World]]:
        one = state.tries[number]
        writer, name = one.writers[line], f"writer {line} of try {number}"
        if one.phase not in (Phase.SENDING, Phase.FAILED):
            return
        rows = self.batches[one.batch][line]
        if writer is Writer.NEW and one.phase is Phase.SENDING:
            if one.sent[line] >= len(rows):
                yield f"{name} has nothing to send", _moved(state, number, line, Writer.DONE)
            elif not any(other.writers[line] is Writer.OPEN for other in state.tries):
                yield f"{name} opens its name", _moved(state, number, line, self._opened(state, one, line))
        if writer is Writer.OPEN:
            yield f"{name} dies", _moved(state, number, line, Writer.DEAD)
            if one.sent[line] >= len(rows):
                yield f"{name} closes its name", _moved(state, number, line, Writer.DONE)
            else:
                yield f"{name} sends {rows[one.sent[line]]}", self._sent(state, number, line)

    def _opened(self, state: World, one: Try, line: int) -> Writer:
        other = len(state.lines[line]) != one.found[line] and not state.forgotten[line]
        return Writer.DEAD if other and Rule.NEWEST in self.rules else Writer.OPEN

    def _sent(self, state: World, number: int, line: int) -> World:
        one = state.tries[number]
        place = one.sent[line]
        if place < len(state.lines[line]) and not state.forgotten[line]:
            if Rule.DROPPED in self.rules:
                return _moved(state, number, line, Writer.DEAD)
        else:
            row = self.batches[one.batch][line][place]
            lines = _put(state.lines, line, (*state.lines[line], row))
            state = state._replace(lines=lines, forgotten=_put(state.forgotten, line, False))
        return _with(state, number, one._replace(sent=_put(one.sent, line, place + 1)))

    def _topic(self, state: World) -> Iterator[tuple[str, World]]:
        everything = tuple(len(rows) for rows in state.lines)
        if state.deleted != everything:
            yield "the topic loses what was read", state._replace(deleted=everything)
        if state.forgotten != (True, True) and state.lines != ((), ()):
            tries = tuple(one if one.phase is Phase.ENDED else one._replace(phase=Phase.FAILED) for one in state.tries)
            tries = tuple(one._replace(writers=(Writer.DEAD, Writer.DEAD)) for one in tries)
            yield "the broker forgets every name", state._replace(forgotten=(True, True), tries=tries)


def _words(lines: tuple[Rows, ...]) -> str:
    return " and ".join("".join(rows) or "nothing" for rows in lines)


def _connected(state: World, number: int) -> bool:
    return any(Writer.OPEN in one.writers for one in state.tries[:number])


def _without_beginners(state: World, number: int) -> World:
    tries = list(state.tries)
    for place, one in enumerate(tries[:number]):
        if one.phase is not Phase.ENDED:
            writers = tuple(Writer.DEAD if writer is Writer.NEW else writer for writer in one.writers)
            tries[place] = one._replace(phase=Phase.FAILED, writers=writers)
    return state._replace(tries=tuple(tries))


def _moved(state: World, number: int, line: int, writer: Writer) -> World:
    one = state.tries[number]
    return _with(state, number, one._replace(writers=_put(one.writers, line, writer)))


def _with(state: World, number: int, one: Try) -> World:
    return state._replace(tries=_put(state.tries, number, one))


def _put(values: tuple[object, ...], place: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:place], value, *values[place + 1 :])
