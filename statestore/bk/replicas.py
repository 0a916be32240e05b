"""Ask each bookie for its copy of the entries that files are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from statestore.bk.tree import NO_LEDGER, FileRecord
from statestore.errors import NotFound, StateStoreError, Unavailable

GOOD = "good"
Ask = Callable[[int, int, int], str]
"""Ledger, first and last entry to the lines that the jar's `Maintenance.replicas` writes."""
_RANGE = 256  # entries of one question: up to 256 MiB are read from each bookie before its answer


@dataclass(frozen=True, slots=True)
class Copy:
    """An entry's copy that is not good.

    Attributes:
        says: what is wrong with it.
        good: how many other copies of the entry are good.
        sealed: whether the ledger is; in an open one a copy beyond the ack quorum may be on its way.
        files: the files that have bytes in the entry.
    """

    ledger: int
    entry: int
    bookie: str
    says: str
    good: int
    sealed: bool
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LostLedger:
    """A ledger that files are in, and of which nothing is known.

    Attributes:
        says: why.
        files: the files that have bytes in it.
        gone: BookKeeper has no such ledger. Otherwise nobody could be asked.
    """

    ledger: int
    says: str
    files: tuple[str, ...]
    gone: bool


def check_copies(
    records: Mapping[str, FileRecord],
    sealed: Callable[[int], bool],
    ask: Ask,
    progress: Callable[[int, int, str], None] | None = None,
) -> tuple[int, list[Copy], list[LostLedger]]:
    """Ask for each entry of the files, each once.

    Args:
        records: by path.
        sealed: whether a ledger is.
        ask: the jar's question.
        progress: called before each question with how many entries are done, how many there are, and the ledger.

    Returns:
        How many copies answered or should have; those that are not good; the ledgers that nothing is known of.
    """
    users: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path, record in records.items():
        if record.ledger != NO_LEDGER:
            for entry in range(record.first, record.last + 1):
                users[record.ledger][entry].append(path)
    total = sum(len(entries) for entries in users.values())
    done = copies = 0
    bad: list[Copy] = []
    lost: list[LostLedger] = []
    for ledger, entries in sorted(users.items()):
        for first, last in _ranges(sorted(entries)):
            if progress is not None:
                progress(done, total, f"ledger {ledger}")
            done += last - first + 1
            try:
                answers = _parse(ask(ledger, first, last))
            except (NotFound, Unavailable) as error:
                files = tuple(sorted({path for paths in entries.values() for path in paths}))
                lost.append(LostLedger(ledger, str(error), files, isinstance(error, NotFound)))
                break
            for entry, by_bookie in answers.items():
                copies += len(by_bookie)
                good = sum(says == GOOD for says in by_bookie.values())
                bad += [
                    Copy(
                        ledger=ledger,
                        entry=entry,
                        bookie=bookie,
                        says=says,
                        good=good,
                        sealed=sealed(ledger),
                        files=tuple(entries[entry]),
                    )
                    for bookie, says in by_bookie.items()
                    if says != GOOD
                ]
    return copies, bad, lost


def _ranges(entries: list[int]) -> Iterable[tuple[int, int]]:
    """Runs of entries that follow each other, none longer than one question."""
    first = last = entries[0]
    for entry in entries[1:]:
        if entry != last + 1 or entry - first >= _RANGE:
            yield first, last
            first = entry
        last = entry
    yield first, last


def _parse(text: str) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for line in text.splitlines():
        try:
            entry, bookie, says = line.split(" ", 2)
            found[int(entry)][bookie] = says
        except ValueError as error:
            raise StateStoreError(f"the jar's answer about replicas can't be read ({line!r})") from error
    return found
