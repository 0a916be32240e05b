"""A topic's entries, its transaction buffer and a reader's rule: what the broker shows must be what the rule shows.

The broker, as `TopicTransactionBuffer` and its snapshots go: an entry of a transaction opens it from there, unless it
is open or aborted; a commit ends it; an abort ends it and hides all its entries; each end of a transaction brings the
coordinator's low watermark, by which the broker aborts the first open transaction itself where that is not after it.
Readable is what lies before the first entry of the first open transaction. A restart loads the last snapshot (what was
readable, and what was aborted), and goes through the entries after it again. Ledgers are deleted from the front, and
what is known of an aborted transaction goes with its marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, NamedTuple


class Rule(Enum):
    """One rule each. The value is a sentence that is true of `eos.history.visibility`."""

    AFTER = "Only a marker after an entry tells of it"
    FIRST = "Of several markers of its transaction the first one tells"
    LATER = "Markers count up to a last confirmed entry that was taken after the end of the range"
    HIDDEN = "An entry without a marker up to there is not visible"


ALL: Final = frozenset(Rule)


class Kind(Enum):
    """The content of an entry."""

    PLAIN = auto()
    DATA = auto()
    COMMIT = auto()
    ABORT = auto()


class Txn(Enum):
    """The coordinator's knowledge of a transaction."""

    NEW = auto()
    OPEN = auto()
    COMMITTING = auto()
    ABORTING = auto()
    ENDED = auto()


Entry = tuple[Kind, int]
Marks = tuple[tuple[int, int], ...]  # of transactions: the transaction, and an entry's number


class World(NamedTuple):
    """Everything.

    Attributes:
        log: the entries, those that are deleted too.
        deleted: how many of them are.
        transactions: as the coordinator knows them.
        open: as the broker knows them, with the first entry of each, in that order.
        aborted: as the broker knows them, with the entry of each one's last marker, in that order.
        watermark: no transaction up to it is under way, as far as the broker was told.
        snapshot: what was readable, and what was aborted.
        reader: the last readable entry when a reader asked, or None before.
        answers: what the rule said of each entry then.
    """

    log: tuple[Entry, ...]
    deleted: int
    transactions: tuple[Txn, ...]
    open: Marks
    aborted: Marks
    watermark: int
    snapshot: tuple[int, Marks]
    reader: int | None
    answers: tuple[bool, ...]

    @property
    def readable(self) -> int:
        """The last entry that readers may get."""
        return self.open[0][1] - 1 if self.open else len(self.log) - 1


_MARKERS: Final = {Txn.COMMITTING: Kind.COMMIT, Txn.ABORTING: Kind.ABORT}


@dataclass(frozen=True)
class Visibility:
    """The model.

    Attributes:
        length: how many entries are stored, at most; the broker's own aborts may come on top.
        transactions: how many there are.
        late: entries may be sent into a transaction that has ended.
        deletes: ledgers are deleted from the front.
        restarts: the broker takes snapshots, and starts again from them.
        rules: of the reader.
    """

    length: int = 5
    transactions: int = 2
    late: bool = False
    deletes: bool = False
    restarts: bool = True
    rules: frozenset[Rule] = ALL

    def start(self) -> World:
        """Nothing is stored."""
        return World((), 0, (Txn.NEW,) * self.transactions, (), (), -1, (-1, ()), None, ())

    def canonical(self, state: World) -> World:
        """Names mean something here: transactions are numbered in order."""
        return state

    def stuck(self, state: World) -> str | None:
        """A full topic does not count as a fault."""
        return None

    def fault(self, state: World) -> str | None:
        """Compare what the broker shows of what was readable when the reader asked with what the rule shows."""
        if state.reader is None:
            return None
        hidden = {txn for txn, _ in state.aborted}
        for at in range(state.deleted, state.reader + 1):
            kind, txn = state.log[at]
            broker = kind is Kind.PLAIN or (kind is Kind.DATA and txn not in hidden)
            shows = self._shows(state, at)
            if broker != shows and not (self.late and _hidden_after_its_commit(state, at)):
                return f"entry {at}: the broker {'shows' if broker else 'hides'} it, and the rule does not agree"
            if shows != state.answers[at]:
                return f"entry {at}: the rule has changed its answer, so a task that is tried again reads other rows"
        return None

    def _shows(self, state: World, at: int) -> bool:
        kind, txn = state.log[at]
        if kind is not Kind.DATA:
            return kind is Kind.PLAIN
        begin = at + 1 if Rule.AFTER in self.rules else state.deleted
        end = len(state.log) if Rule.LATER in self.rules else (state.reader or 0) + 1
        markers = [kind for kind, owner in state.log[begin:end] if owner == txn and kind in _MARKERS.values()]
        if not markers:
            return Rule.HIDDEN not in self.rules
        if Rule.FIRST not in self.rules:
            return markers[-1] is Kind.COMMIT
        return markers[0] is Kind.COMMIT

    def steps(self, state: World) -> Iterator[tuple[str, World]]:
        """The next steps of transactions, the broker and the reader."""
        room = len(state.log) < self.length
        if room:
            yield "a plain entry", state._replace(log=(*state.log, (Kind.PLAIN, -1)))
        for txn, now in enumerate(state.transactions):
            yield from self._transaction(state, txn, now, room)
        if self.restarts:
            yield "snapshot", state._replace(snapshot=(state.readable, state.aborted))
            yield "restart", _restarted(state)
        if self.deletes and state.deleted <= state.readable and state.deleted < len(state.log):
            deleted = state.deleted + 1
            aborted = tuple(one for one in state.aborted if one[1] >= deleted)
            yield "a ledger is deleted", state._replace(deleted=deleted, aborted=aborted)
        if state.reader is None:
            asked = state._replace(reader=state.readable)
            answers = tuple(self._shows(asked, at) for at in range(state.readable + 1))
            yield "the reader asks", asked._replace(answers=answers)

    def _transaction(self, state: World, txn: int, now: Txn, room: bool) -> Iterator[tuple[str, World]]:
        if now is Txn.NEW:
            if txn == 0 or state.transactions[txn - 1] is not Txn.NEW:
                yield f"{txn} opens", _with(state, txn, Txn.OPEN)
            return
        sends = now is Txn.OPEN or self.late
        if room and sends and state.watermark < txn:
            yield f"an entry of {txn}", _opened(state._replace(log=(*state.log, (Kind.DATA, txn))), txn, len(state.log))
        if now is Txn.OPEN:
            yield f"{txn} is to be committed", _with(state, txn, Txn.COMMITTING)
            yield f"{txn} is to be aborted", _with(state, txn, Txn.ABORTING)
        if now in _MARKERS and room:
            yield f"{txn} ends", _ended(_with(state, txn, Txn.ENDED), txn, _MARKERS[now])
            yield f"{txn} ends, and the answer is lost", _ended(state, txn, _MARKERS[now])


def _hidden_after_its_commit(state: World, at: int) -> bool:
    """Whether a late send made the broker abort what was committed: the one way in which the two differ."""
    later = [kind for kind, owner in state.log[at + 1 :] if owner == state.log[at][1]]
    return Kind.COMMIT in later and Kind.ABORT in later[later.index(Kind.COMMIT) :]


def _with(state: World, txn: int, now: Txn) -> World:
    transactions = (*state.transactions[:txn], now, *state.transactions[txn + 1 :])
    return state._replace(transactions=transactions)


def _without(marks: Marks, txn: int) -> Marks:
    return tuple(one for one in marks if one[0] != txn)


def _opened(state: World, txn: int, at: int) -> World:
    if any(txn == one for one, _ in (*state.open, *state.aborted)):
        return state
    return state._replace(open=(*state.open, (txn, at)))


def _marked(state: World, txn: int, kind: Kind) -> World:
    aborted = state.aborted
    if kind is Kind.ABORT:
        aborted = (*_without(aborted, txn), (txn, len(state.log)))
    return state._replace(log=(*state.log, (kind, txn)), open=_without(state.open, txn), aborted=aborted)


def _ended(state: World, txn: int, kind: Kind) -> World:
    under_way = [one for one, now in enumerate(state.transactions) if now in (Txn.OPEN, *_MARKERS)]
    known = [one for one, now in enumerate(state.transactions) if now is not Txn.NEW]
    state = _marked(state, txn, kind)._replace(
        watermark=max(state.watermark, min(under_way) - 1 if under_way else max(known))
    )
    while state.open and state.open[0][0] <= state.watermark:
        state = _marked(state, state.open[0][0], Kind.ABORT)
    return state


def _restarted(state: World) -> World:
    readable, aborted = state.snapshot
    again = state._replace(open=(), aborted=aborted, watermark=-1)
    for at in range(max(readable + 1, state.deleted), len(state.log)):
        kind, txn = state.log[at]
        if kind is Kind.DATA:
            again = _opened(again, txn, at)
        elif kind is not Kind.PLAIN:
            aborted = (*_without(again.aborted, txn), (txn, at)) if kind is Kind.ABORT else again.aborted
            again = again._replace(open=_without(again.open, txn), aborted=aborted)
    return again


PUNCTUAL: Final = Visibility(length=5)
LATE: Final = Visibility(length=4, late=True, restarts=False)
DELETED: Final = Visibility(length=3, deletes=True)

WORLDS: Final[dict[str, Visibility]] = {
    "two transactions": Visibility(length=3),
    "two transactions, ledgers deleted": DELETED,
    "two transactions, late sends": LATE,
}
"""Explored in every run of the tests."""

LARGE: Final[dict[str, Visibility]] = {
    "two transactions, five entries": PUNCTUAL,
    "three transactions": replace(PUNCTUAL, length=4, transactions=3),
    "late sends, five entries": replace(LATE, length=5),
    "late sends, restarts": replace(LATE, restarts=True),
    "late sends, ledgers deleted": replace(LATE, deletes=True),
}
"""Explored by `make models`."""

WITHOUT: Final[dict[Rule, Visibility]] = {
    Rule.AFTER: LATE,
    Rule.FIRST: LATE,
    Rule.LATER: PUNCTUAL,
    Rule.HIDDEN: LATE,
}


def without(rule: Rule) -> Visibility:
    """Give the small world without a rule."""
    return replace(WITHOUT[rule], rules=ALL - {rule})
