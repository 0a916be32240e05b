"""The account: what a job's output should hold, against what independent readers have read. Pure; no I/O.

Rows are values: two rows with the same fields are copies of one another. A row whose fields are not all as expected
is another row: it is counted as unexpected, and the one that should be there as lost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice
from typing import NamedTuple, Protocol

from statestore.drills.judge.findings import Account, Readers, Verdict, counted

OFFENDERS = 10
"""How many ids of each kind an account names."""


class OutputRow(NamedTuple):
    """One row of a job's output.

    Attributes:
        batch: the micro-batch that wrote it.
        key: what it is ordered by; "" for a row without a key, which has no order.
        order: ascends within a key.
        content: the rest of what it says.
    """

    batch: int
    key: str
    order: int
    content: str = ""

    def __str__(self) -> str:
        words = [f"batch {self.batch}", *([f"key {self.key} #{self.order}"] if self.key else []), self.content]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Expected:
    """The expected content of a job's output.

    Attributes:
        attempted: every row that the input asks for.
        committed: the batches that the query has committed. Others may be there, but then as a whole.
        stateful: the newest row of each key is the job's state.
        keys_move: the topic got more partitions meanwhile, and so a key another one: its order is that of each.
    """

    attempted: frozenset[OutputRow]
    committed: frozenset[int]
    stateful: bool = False
    keys_move: bool = False

    @cached_property
    def batches(self) -> Mapping[int, frozenset[OutputRow]]:
        """The rows of each batch."""
        found: dict[int, set[OutputRow]] = defaultdict(set)
        for row in self.attempted:
            found[row.batch].add(row)
        return {batch: frozenset(rows) for batch, rows in found.items()}

    @cached_property
    def due(self) -> frozenset[OutputRow]:
        """The rows of committed batches."""
        return frozenset(row for row in self.attempted if row.batch in self.committed)


class OutputRows(Protocol):
    """The rows of a partition, in their order: a list, or what takes less memory than one."""

    def append(self, row: OutputRow, /) -> None:
        """Add a row after the others."""
        ...

    def __iter__(self) -> Iterator[OutputRow]: ...

    def __len__(self) -> int: ...


@dataclass
class Reading:
    """The rows that one reader has read, by partition, in the order in which they came.

    Attributes:
        reader: its name.
        rows: those of each partition; one that is asked for comes into being.
        shortfall: why it did not come to the end of the topic; "" if it did.
    """

    reader: str
    rows: Mapping[str, OutputRows] = field(default_factory=lambda: defaultdict[str, OutputRows](list))
    shortfall: str = ""

    def all_rows(self) -> Iterator[OutputRow]:
        """Give every row, partition after partition."""
        for rows in self.rows.values():
            yield from rows


def account(
    job: str,
    expected: Expected,
    final: Reading,
    live: Sequence[Reading] = (),
    state_equal: bool | None = None,
) -> Account:
    """Compare the output with what it should be.

    Args:
        job: its name.
        expected: what should be there.
        final: what a reader found that started from earliest after all was over.
        live: what other readers saw while the job ran.
        state_equal: whether the state itself, wherever it is kept, was found right; None: it wasn't looked at.

    The verdict is UNKNOWN when a reader did not come to the end, or nothing was committed; what is wrong for sure is
    FAIL all the same. A reader that has not come to the end has lost no row, and what it has not found isn't counted as
    0 (`Account`). What several readers found wrong in a row counts as often as the one of them that saw most of it.
    """
    lost, duplicated, unexpected = Counter[OutputRow](), Counter[OutputRow](), Counter[OutputRow]()
    for one in (final, *live):  # what only a reader saw that read meanwhile is wrong too: a job may have been it
        missing, extra, foreign = _wrong_rows(expected, one)
        lost, duplicated, unexpected = lost | missing, duplicated | extra, unexpected | foreign
    wrong: dict[str, list[str]] = {
        "lost": _ids(lost.elements()),
        "duplicated": _ids(duplicated.elements()),
        "unexpected": _ids(unexpected.elements()),
        "out_of_order": _ids(_out_of_order(expected, final)),
        "torn": list(torn_batches(expected, [final, *live]).values()),
    }
    if expected.stateful and not final.shortfall:
        state_equal = _newest(expected.due) == _newest(_due(expected, final)) and state_equal is not False
    verdict, reason = _verdict(expected, final, live, wrong, state_equal)
    whole = not final.shortfall
    return Account(
        job=job,
        attempted=len(expected.attempted),
        committed=len(expected.due),
        found=sum(map(len, final.rows.values())),
        lost=counted(len(wrong["lost"]), whole),
        duplicated=counted(len(wrong["duplicated"]), whole),
        unexpected=counted(len(wrong["unexpected"]), whole),
        out_of_order=counted(len(wrong["out_of_order"]), whole),
        torn=counted(len(wrong["torn"]), whole and not any(one.shortfall for one in live)),
        state_equal=state_equal,
        offenders={kind: tuple(islice(dict.fromkeys(ids), OFFENDERS)) for kind, ids in wrong.items() if ids},
        verdict=verdict,
        reason=reason,
    )


def _wrong_rows(
    expected: Expected, reading: Reading
) -> tuple[Counter[OutputRow], Counter[OutputRow], Counter[OutputRow]]:
    """Return the rows that a reader did not find, the copies beyond the first, and those never asked for."""
    copies = Counter(reading.all_rows())
    lost = Counter[OutputRow]() if reading.shortfall else Counter(expected.due - copies.keys())
    extra = Counter({row: count - 1 for row, count in copies.items() if row in expected.attempted})
    return lost, extra, Counter({row: count for row, count in copies.items() if row not in expected.attempted})


def live_findings(job: str, expected: Expected, final: Reading, live: Sequence[Reading]) -> Readers:
    """Say what the readers saw that read while the job ran; `final` tells what else belongs to a batch."""
    torn = torn_batches(expected, live, [final])
    whole = not any(one.shortfall for one in live)
    return Readers(job, len(live), counted(len(torn), whole), tuple(islice(torn.values(), OFFENDERS)))


def torn_batches(expected: Expected, readings: Sequence[Reading], others: Sequence[Reading] = ()) -> dict[int, str]:
    """Return the batches that a reader has seen in part, each with a sentence about the first sight of that.

    Pulsar shows a committed transaction on one partition after the other, so a reader that looks at all of them may
    have a batch on one and not yet on the next. That is not torn. A batch is torn for a reader that has read any of
    it when

    - its rows on one partition don't stand together: rows of other batches stand between them; or
    - on a partition where the reader has read a row of a later batch, or has come to the end, a row of the batch is
      missing that belongs there.

    The rows that belong on a partition are those that any reader has found on it, of `readings` and `others`. At the
    end of the topic they are all rows of the batch. Rows that were never asked for and rows with copies are counted
    elsewhere: it doesn't matter here where they stand.
    """
    places: dict[tuple[str, int], set[OutputRow]] = defaultdict(set)
    for reading in [*readings, *others]:
        for partition, rows in reading.rows.items():
            for row in rows:
                places[partition, row.batch].add(row)
    torn: dict[int, str] = {}
    for reading in readings:
        for batch, what in _torn_for(expected, reading, places):
            torn.setdefault(batch, f"batch {batch}: {reading.reader} {what}")
    return dict(sorted(torn.items()))


def _torn_for(
    expected: Expected, reading: Reading, places: Mapping[tuple[str, int], Collection[OutputRow]]
) -> Iterator[tuple[int, str]]:
    seen: dict[int, set[OutputRow]] = defaultdict(set)
    newest: dict[str, int] = {}
    for partition, rows in _once(expected, reading):
        runs = Counter(batch for batch, _ in groupby(rows, key=lambda row: row.batch))
        yield from ((batch, f"found it in {count} pieces on {partition}") for batch, count in runs.items() if count > 1)
        newest[partition] = max(runs, default=-1)
    for row in expected.attempted.intersection(reading.all_rows()):
        seen[row.batch].add(row)
    for batch, rows_seen in seen.items():
        must: set[OutputRow] = set()
        if reading.shortfall:
            for partition, last in newest.items():
                if last > batch:
                    must.update(places.get((partition, batch), ()))
            must &= expected.batches[batch]
        else:
            must.update(expected.batches[batch])
        missing = len(must - rows_seen)
        if missing:
            yield batch, f"found {len(rows_seen)} of its rows and missed {missing}"


def _ids(rows: Iterable[OutputRow]) -> list[str]:
    """Name rows, the earliest first."""
    return [str(row) for row in sorted(rows)]


def _once(expected: Expected, reading: Reading) -> Iterator[tuple[str, list[OutputRow]]]:
    """Give the rows of each partition that were expected and found once: their places can be judged."""
    copies = Counter(reading.all_rows())
    for partition, rows in reading.rows.items():
        yield partition, [row for row in rows if copies[row] == 1 and row in expected.attempted]


def _out_of_order(expected: Expected, final: Reading) -> Iterator[OutputRow]:
    """Give rows that come after a later one of their key, or on another partition than those before."""
    homes: dict[str, str] = {}
    newest: dict[str, int] = {}
    for partition, rows in _once(expected, final):
        if expected.keys_move:
            homes, newest = {}, {}
        for row in rows:
            if not row.key:
                continue
            home = homes.setdefault(row.key, partition)
            if home != partition or row.order < newest.get(row.key, row.order):
                yield row
            newest[row.key] = max(row.order, newest.get(row.key, row.order))


def _due(expected: Expected, final: Reading) -> Iterator[OutputRow]:
    return (row for row in final.all_rows() if row.batch in expected.committed)


def _newest(rows: Iterable[OutputRow]) -> dict[str, OutputRow]:
    newest: dict[str, OutputRow] = {}
    for row in rows:
        newest[row.key] = max(row, newest.get(row.key, row), key=lambda one: one.order)
    return newest


def _verdict(
    expected: Expected,
    final: Reading,
    live: Sequence[Reading],
    wrong: Mapping[str, Sequence[str]],
    state_equal: bool | None,
) -> tuple[Verdict, str]:
    found = [f"{len(ids)} {kind.replace('_', ' ')} (first: {ids[0]})" for kind, ids in wrong.items() if ids]
    if state_equal is False:
        found.append("the final state is not what plain pandas computes")
    behind = [f"{one.reader} did not read to the end: {one.shortfall}" for one in (final, *live) if one.shortfall]
    if found:
        return Verdict.FAIL, " ".join([f"{'; '.join(found)}.", *behind])
    if behind:
        return Verdict.UNKNOWN, " ".join(behind)
    if not expected.due:
        return Verdict.UNKNOWN, "The query has committed no row, so nothing was put to the test."
    readers = f", and {len(live)} readers saw no torn batch" if live else ""
    return Verdict.PASS, f"Each of {len(expected.due)} committed rows was found exactly once and in order{readers}."
