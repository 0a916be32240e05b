from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eos.bookkeeper.net.ledger_reader import BATCH_BYTES, LedgerReader
from eos.bookkeeper.wire.digest import Digest, StoredEntries
from eos.bookkeeper.wire.frames import BookieAnswer
from eos.bookkeeper.wire.metadata import LedgerMetadata, LedgerState

LEDGER = 7
STORED = StoredEntries(LEDGER, Digest.DUMMY)
SEVERAL = 16  # entries that a bookie is asked for one by one before their sizes are known
KINDS = ["batch", "old", "striped"]


class CountingBookies:
    """Bookies without a network that have each entry, and count what they hand out.

    Args: the size of each entry by its number, whether they are older than batch reads, and the most entries of a
    batch.
    """

    def __init__(self, size: Callable[[int], int], *, old: bool = False, max_batch: int = 10**6) -> None:
        self.size, self.old, self.max_batch = size, old, max_batch
        self.bytes = self.requests = 0
        self._lock = threading.Lock()

    @contextmanager
    def connection(self, _bookie: str) -> Iterator[CountingBookies]:
        yield self

    def quarantined(self, _bookie: str) -> bool:
        return False

    def reads_batches(self, _bookie: str) -> bool:
        return not self.old

    def read(self, ledger: int, entries: Sequence[int]) -> list[BookieAnswer]:
        self._count(len(entries), sum(map(self.size, entries)))
        return [BookieAnswer(0, ledger, entry, (self._stored(entry),)) for entry in entries]

    def read_batch(self, ledger: int, first: int, count: int, max_bytes: int) -> BookieAnswer:
        """Answer as BookKeeper's BatchedReadEntryProcessor: it counts the frame too."""
        given, frame = 0, 36
        for entry in range(first, first + min(count, self.max_batch)):
            frame += 32 + self.size(entry) + 4
            if given and frame > max_bytes:
                break
            given += 1
        self._count(1, sum(map(self.size, range(first, first + given))))
        return BookieAnswer(0, ledger, first, tuple(map(self._stored, range(first, first + given))))

    def _count(self, requests: int, handed_out: int) -> None:
        with self._lock:
            self.requests += requests
            self.bytes += handed_out

    def _stored(self, entry: int) -> bytes:
        return STORED.stored(entry, entry - 1, 0, payload(entry, self.size(entry)))


def payload(entry: int, size: int) -> bytes:
    return (b"%d." % entry * size)[:size]


def metadata_of(kind: str, *, closed: tuple[int, int] | None = None, move_at: int = 0) -> LedgerMetadata:
    """Return metadata. Args: entries and bytes of a closed ledger; the entry where its second ensemble begins, or 0."""
    ids = ("a:1", "b:1", "c:1") if kind == "striped" else ("a:1",)
    ensembles = ((0, ids), (move_at, ids[::-1])) if move_at else ((0, ids),)
    state = LedgerState.CLOSED if closed else LedgerState.OPEN
    entries, length = closed or (0, 0)
    return LedgerMetadata(LEDGER, state, len(ids), 1, 1, ensembles, Digest.DUMMY, entries - 1, length)


def reader_of(bookies: CountingBookies, metadata: LedgerMetadata, **options: Any) -> LedgerReader:
    return LedgerReader(bookies, metadata, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("entry_bytes", [None, 1000, 2**20])
@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_entries_are_taken_no_more_than_the_window_waits_in_memory(
    kind: str, entry_bytes: int | None, window: int
) -> None:
    """It was 1,024 entries of each request, however large, where the size of an entry was not known."""
    bookies = CountingBookies(lambda _: 2**20, old=kind == "old")
    entries = reader_of(bookies, metadata_of(kind), entry_bytes=entry_bytes, window=window).read(0, 10**5)
    next(entries)
    entries.close()  # type: ignore[attr-defined]
    over = 1 if kind == "batch" or entry_bytes == 2**20 else SEVERAL
    assert bookies.bytes <= window * (BATCH_BYTES + over * 2**20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("size", "entries", "before_if_known", "before"),
    [
        (100, 20_000, 5, 20),
        (1000, 20_000, 5, 20),
        (4060, 5000, 9, 9),
        (4096, 5000, 9, 9),
        (20_000, 2000, 10, 10),
        (2**17, 400, 25, 13),
        (2**20, 40, 20, 14),
    ],
)
def test_entries_of_one_size_take_no_more_requests_than_before_bytes_were_limited(
    kind: str, known: bool, size: int, entries: int, before_if_known: int, before: int
) -> None:
    bookies = CountingBookies(lambda _: size, old=kind == "old")
    metadata = metadata_of(kind, closed=(entries, entries * size) if known else None)
    read = list(itertools.chain.from_iterable(reader_of(bookies, metadata).read(0, entries - 1)))
    assert [number for number, _ in read] == list(range(entries))
    if kind == "batch":
        assert bookies.requests <= (before_if_known if known else before)
    else:
        assert bookies.requests == entries  # none is asked for twice


def test_a_further_request_asks_only_for_the_bytes_that_still_fit() -> None:
    """A bookie may give less than it was asked for."""
    bookies = CountingBookies(lambda _: 300, max_batch=9)
    next(reader_of(bookies, metadata_of("batch"), window=1, batch_bytes=4000, entry_bytes=1).read(0, 100))
    assert bookies.requests == 2
    assert bookies.bytes <= 4000


@pytest.mark.parametrize("kind", ["old", "striped"])
def test_single_reads_become_no_more_than_fit_by_the_sizes_that_were_seen(kind: str) -> None:
    bookies = CountingBookies(lambda _: 2**17, old=kind == "old")
    next(reader_of(bookies, metadata_of(kind), window=1, entry_bytes=1000).read(0, 10**5))
    assert bookies.bytes <= BATCH_BYTES + 2**17


def test_requests_become_larger_where_entries_are_smaller_than_expected() -> None:
    bookies = CountingBookies(lambda _: 100)
    reader = reader_of(bookies, metadata_of("batch"), entry_bytes=2**20)
    assert sum(map(len, reader.read(0, 19_999))) == 20_000
    assert bookies.requests <= 3 + 20_000 // 4000


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    sizes=st.lists(
        st.tuples(st.sampled_from([0, 10, 300, 3000, 20_000]), st.integers(1, 30)).map(lambda run: [run[0]] * run[1]),
        min_size=1,
        max_size=6,
    ).map(lambda runs: list(itertools.chain.from_iterable(runs))),
    window=st.integers(1, 3),
    entry_bytes=st.sampled_from([None, 1, 300, 20_000]),
    max_batch=st.sampled_from([1, 7, 10**6]),
    data=st.data(),
)
def test_entries_of_any_sizes_come_once_and_in_order_and_within_the_memory(
    kind: str, sizes: list[int], window: int, entry_bytes: int | None, max_batch: int, data: st.DataObject
) -> None:
    last = len(sizes) - 1
    first, move_at = data.draw(st.integers(0, last), "first"), data.draw(st.integers(0, last), "move_at")
    closed_after = data.draw(st.integers(1, len(sizes)), "closed_after")
    bookies = CountingBookies(sizes.__getitem__, old=kind == "old", max_batch=max_batch)
    metadata = metadata_of(kind, move_at=move_at)
    options: dict[str, Any] = {"window": window, "batch_bytes": 4000, "entry_bytes": entry_bytes}
    read: list[tuple[int, bytes]] = []
    taken = 0
    # The first reader is closed early, and a second one reads on where it ended.
    for most in (closed_after, len(sizes)):
        entries = reader_of(bookies, metadata, **options).read(first + len(read), last)
        for some in itertools.islice(entries, most):
            waiting, taken = bookies.bytes - taken, taken + sum(len(one) for _, one in some)
            assert some
            assert kind != "batch" or waiting <= window * (4000 + max(sizes))
            read += some
        entries.close()  # type: ignore[attr-defined]
        taken = bookies.bytes
    assert read == [(entry, payload(entry, sizes[entry])) for entry in range(first, last + 1)]
