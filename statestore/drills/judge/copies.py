"""The rows that go from topic to topic in a drill, and the account of them.

Two writers send rows to the input, 0, 1, 2 … each: `plain` without transactions, `transactional` in transactions. Some
of these are aborted. A row is a message with a key, `plain-3`, and a JSON object that says the same again:

    {"key": "plain-3", "n": 19, "pad": "…"}        n % KEYS is in the key, so the rows of a key ascend

The job copies them as they are. Millions of them are compared, so they are kept as numbers. Pure; no I/O.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from statestore.drills.judge.accounting import OFFENDERS, OutputRow, OutputRows, Reading
from statestore.drills.judge.findings import Account, Verdict, counted

KEYS = 16
"""Keys of each writer."""
PAD = "." * 64

_BITS = 40  # of a row's number, in the one integer that stands for a row; a key has the others


class CopyOutcome(StrEnum):
    """A writer's knowledge of rows that it has sent: they are in the input, they are not, or either."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    IN_DOUBT = "in-doubt"


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of a writer from number `first` up to `end`, without it, and what became of them."""

    writer: str
    first: int
    end: int
    outcome: CopyOutcome

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.end - self.first


def key_of(writer: str, number: int) -> str:
    """Return the key of a writer's row."""
    return f"{writer}-{number % KEYS}"


def value_of(key: str, number: int) -> bytes:
    """Return the value of a row."""
    return json.dumps({"key": key, "n": number, "pad": PAD}).encode()


def parse(key: str, data: bytes) -> OutputRow:
    """Read a message as a row. Anything else becomes a row without a key, which is unexpected."""
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    match value:
        case {"key": str(own), "n": int(number), "pad": str(pad), **rest} if not rest and own == key and pad == PAD:
            return OutputRow(0, key, number)
    return OutputRow(-1, "", 0, f"not a row, but {data[:80]!r} with key {key!r}")


class PackedRows:
    """The rows of a partition, in their order, in ten bytes each. Of those with a key only key and order are kept."""

    def __init__(self, rows: Iterable[OutputRow] = ()) -> None:
        self.names: dict[str, int] = {}
        self.keys = array("H")
        self.orders = array("q")
        self.strange: list[OutputRow] = []
        for row in rows:
            self.append(row)

    def append(self, row: OutputRow, /) -> None:
        """Add a row after the others."""
        if not row.key:
            self.strange.append(row)
            return
        self.keys.append(self.names.setdefault(row.key, len(self.names)))
        self.orders.append(row.order)

    def __len__(self) -> int:
        return len(self.orders) + len(self.strange)

    def __iter__(self) -> Iterator[OutputRow]:
        """Give the rows in their order, and after them those without a key."""
        names = list(self.names)
        for key, order in zip(self.keys, self.orders, strict=True):
            yield OutputRow(0, names[key], order)
        yield from self.strange


def account(job: str, given: Reading, found: Reading, blocks: Sequence[Block]) -> Account:
    """Compare the output of a job that copies with its input.

    The expected rows are those that an independent reader of the input has found, each copy counted. A writer that
    sends again a row without a receipt may leave two. The writers' own word goes above that: a row that they know to be
    committed is due, and one that they know to be aborted is not.

    Args:
        job: its name.
        given: the input, read to its end.
        found: the output, read from earliest to its end.
        blocks: all that the writers have sent.

    The verdict is UNKNOWN when a reader did not come to the end, or when no row was committed or none aborted; what is
    wrong for sure is FAIL all the same.
    """
    names = _names([given, found], blocks)
    flat_given, flat_found = _Flat.of(given, names), _Flat.of(found, names)
    sent = {outcome: _codes(names, (one for one in blocks if one.outcome is outcome)) for outcome in CopyOutcome}
    rows = np.unique(np.concatenate([flat_given.codes, flat_found.codes, *sent.values()]))
    read, have = _counts(rows, flat_given.codes), _counts(rows, flat_found.codes)
    aborted = np.isin(rows, sent[CopyOutcome.ABORTED])
    due = np.where(np.isin(rows, sent[CopyOutcome.COMMITTED]), np.maximum(read, 1), read)
    due = np.where(aborted, 0, due)
    lost = np.maximum(due - have, 0) if not found.shortfall else np.zeros_like(due)
    more = np.maximum(have - due, 0)
    # Rows that the reader of the input has not come to may be right in the output, also as a second copy of a row.
    all_given = not given.shortfall
    foreign, doubled = (due == 0) & (aborted | all_given), (due > 0) & all_given
    once = rows[(due == 1) & (read == 1) & (have == 1)]
    strange = [str(row) for packed in flat_found.packed for row in packed.strange]
    words = _Words(names)
    wrong = {
        "lost": (int(lost.sum()), words.of(rows[lost > 0])),
        "duplicated": (int(more[doubled].sum()), words.of(rows[doubled & (more > 0)])),
        "unexpected": (int(more[foreign].sum()) + len(strange), [*words.of(rows[foreign & (more > 0)]), *strange]),
        "out_of_order": words.counted(_out_of_order(flat_given, flat_found, once)),
    }
    sizes = {outcome: sum(one.rows for one in blocks if one.outcome is outcome) for outcome in CopyOutcome}
    verdict, reason = _verdict(wrong, given, found, sizes, int(due.sum()))
    whole = all_given and not found.shortfall
    return Account(
        job=job,
        attempted=sum(sizes.values()),
        committed=int(due.sum()),
        found=sum(len(packed) for packed in flat_found.packed),
        lost=counted(wrong["lost"][0], whole),
        duplicated=counted(wrong["duplicated"][0], whole),
        unexpected=counted(wrong["unexpected"][0], whole),
        out_of_order=counted(wrong["out_of_order"][0], whole),
        torn=None,
        state_equal=None,
        offenders={kind: tuple(islice(ids, OFFENDERS)) for kind, (_, ids) in wrong.items() if ids},
        verdict=verdict,
        reason=reason,
    )


@dataclass(frozen=True)
class _Flat:
    """The rows of all partitions, one partition after the other: a number for each row, and that of its partition."""

    packed: Sequence[PackedRows]
    codes: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, reading: Reading, names: Mapping[str, int]) -> _Flat:
        packed = [_packed(rows) for _, rows in sorted(reading.rows.items())]
        codes = [_code(rows, names) for rows in packed]
        places = [np.full(len(one), number, dtype=np.int64) for number, one in enumerate(codes)]
        return cls(packed, _joined(codes), _joined(places))


class _Words:
    """Names rows by their numbers."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = list(names)

    def of(self, codes: NDArray[np.int64]) -> list[str]:
        """Name the first of them."""
        return [f"key {self._names[code >> _BITS]} #{code & ((1 << _BITS) - 1)}" for code in codes[:OFFENDERS].tolist()]

    def counted(self, codes: NDArray[np.int64]) -> tuple[int, list[str]]:
        return len(codes), self.of(codes)


def _names(readings: Iterable[Reading], blocks: Iterable[Block]) -> dict[str, int]:
    """Number all keys that there are."""
    found = {key_of(block.writer, number) for block in blocks for number in range(KEYS)}
    for reading in readings:
        for rows in reading.rows.values():
            found.update(_packed(rows).names)
    return {name: number for number, name in enumerate(sorted(found))}


def _packed(rows: OutputRows) -> PackedRows:
    return rows if isinstance(rows, PackedRows) else PackedRows(rows)


def _code(packed: PackedRows, names: Mapping[str, int]) -> NDArray[np.int64]:
    numbers = np.array([names[name] for name in packed.names], dtype=np.int64)
    keys = np.array(packed.keys, dtype=np.int64)
    return (numbers[keys] << _BITS) + np.array(packed.orders, dtype=np.int64)


def _codes(names: Mapping[str, int], blocks: Iterable[Block]) -> NDArray[np.int64]:
    ranges: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for block in blocks:
        ranges[block.writer].append(np.arange(block.first, block.end, dtype=np.int64))
    parts = []
    for writer, those in ranges.items():
        orders = np.concatenate(those)
        keys = np.array([names[key_of(writer, number)] for number in range(KEYS)], dtype=np.int64)
        parts.append((keys[orders % KEYS] << _BITS) + orders)
    return _joined(parts)


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _counts(rows: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each of `rows`, which are sorted, is in `codes`."""
    return np.bincount(np.searchsorted(rows, codes), minlength=len(rows)).astype(np.int64)


def _out_of_order(given: _Flat, found: _Flat, once: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rows that come after one that was later in the input, or on another partition than their key.

    `once`, sorted, has the rows that are once in both: their places can be judged.
    """
    ranks = np.zeros(len(once), dtype=np.int64)
    known = np.isin(given.codes, once)
    ranks[np.searchsorted(once, given.codes[known])] = np.flatnonzero(known)
    judged = np.isin(found.codes, once)
    codes, places = found.codes[judged], found.places[judged]
    by_key = np.argsort(codes >> _BITS, kind="stable")
    codes, places = codes[by_key], places[by_key]
    if not len(codes):
        return codes
    keys = codes >> _BITS
    # A key's ranks lie above those of the keys before it, so the highest so far is of the same key.
    ascending = keys * len(given.codes) + ranks[np.searchsorted(once, codes)]
    late = ascending < np.maximum.accumulate(ascending)
    _, firsts, back = np.unique(keys, return_index=True, return_inverse=True)
    away = places != places[firsts][back]
    wrong: NDArray[np.int64] = codes[late | away]
    return wrong


def _verdict(
    wrong: Mapping[str, tuple[int, Sequence[str]]],
    given: Reading,
    found: Reading,
    sizes: Mapping[CopyOutcome, int],
    due: int,
) -> tuple[Verdict, str]:
    errors = [f"{count} {kind.replace('_', ' ')} (first: {ids[0]})" for kind, (count, ids) in wrong.items() if count]
    ends = (("input", given), ("output", found))
    behind = [f"The {end} was not read to the end: {one.shortfall}" for end, one in ends if one.shortfall]
    if errors:
        return Verdict.FAIL, " ".join([f"{'; '.join(errors)}.", *behind])
    if behind:
        return Verdict.UNKNOWN, " ".join(behind)
    if not due or not sizes[CopyOutcome.ABORTED]:
        return (
            Verdict.UNKNOWN,
            f"{due} rows were committed and {sizes[CopyOutcome.ABORTED]} aborted. These are too few to judge by.",
        )
    return Verdict.PASS, (
        f"Each of {due} committed rows of the input was found exactly once and in the order of its key. None of "
        f"{sizes[CopyOutcome.ABORTED]} aborted rows was found. The writers of {sizes[CopyOutcome.IN_DOUBT]} rows were "
        "left in doubt. Of these rows the output has those that the input has."
    )
