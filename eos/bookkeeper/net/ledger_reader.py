"""Reads a range of a ledger's entries from whichever replica has them.

Entries are numbered without a gap, so each is asked for by its number, and each answer is proof of one thing: a right
digest proves the entry, "no such entry" from one replica proves nothing, and from all of them a loss. No answer proves
nothing either. Reading never fences a ledger and never writes, so the ledger's writer does not notice it.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from threading import Lock

from eos.backoff import Backoff
from eos.bookkeeper.errors import (
    BookieClosed,
    BookieUnauthorized,
    BookieUnavailable,
    BookieUntrusted,
    EntryDamaged,
    EntryMissing,
    LedgerReadError,
    MetadataUnreadable,
)
from eos.bookkeeper.net.bookies import Bookies
from eos.bookkeeper.net.bounded_range import BoundedRange, Entries
from eos.bookkeeper.wire.digest import StoredEntries
from eos.bookkeeper.wire.frames import BookieAnswer, Code
from eos.bookkeeper.wire.metadata import LedgerMetadata
from eos.errors import EosError

BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of the entries that one request asks for, about. A bookie gives 5 MiB at most (`maxBatchReadSize`)."""

_MOST_ENTRIES = 4000  # of one request
_UNKNOWN_BYTES = 4096  # of an entry, until the first ones are seen
_SIZE_BYTES = 4  # before each entry of a batch
_ANSWER_BYTES = 64  # of a batch beside its entries, at most
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_REFRESH_PAUSE_S = 1.0  # between two reads of a ledger's metadata, while its bookies are tried again


class Evidence(Enum):
    """The answer of one replica that did not give an entry."""

    LACKS_IT = "does not have it"
    DAMAGED = "has it damaged"
    SILENT = "could not be asked"
    REFUSES = "refuses this client"
    UNTRUSTED = "is not trusted by this client"


@dataclass(frozen=True, slots=True)
class Denial:
    """The answer of one replica in place of an entry, and its reason in words. "" where nothing else is known."""

    evidence: Evidence
    why: str = ""

    def __str__(self) -> str:
        return f"{self.evidence.value} ({self.why})" if self.why else self.evidence.value


class LedgerReader:
    """Reads entries of one ledger. One `read` at a time."""

    def __init__(
        self,
        bookies: Bookies,
        metadata: LedgerMetadata,
        *,
        refresh: Callable[[], LedgerMetadata] | None = None,
        turn: int = 0,
        window: int = 3,
        batch_bytes: int = BATCH_BYTES,
        entry_bytes: int | None = None,
        patience_s: float = 20.0,
    ) -> None:
        """Read nothing yet.

        Args:
            bookies: lends the connections.
            metadata: where the entries are.
            refresh: reads the metadata again. They change for closed ledgers too: recovery and decommissioning replace
                bookies. It raises EntryMissing or MetadataUnreadable where the ledger is no longer there, which ends
                the read, and another EosError where they can't be read now. Default: they are taken as they are.
            turn: which replica is asked first, so that several readers share the load. Default 0.
            window: how many requests are under way at once, so that `window` times `batch_bytes` wait in memory at
                most, and one more entry of each request. Single reads (of striped ledgers, and from bookies before
                4.17) have no limit of bytes: where entries become larger than those before, more of them wait until
                their sizes are seen. Default 3.
            batch_bytes: bytes that one request asks for, about. Default 4 MiB.
            entry_bytes: bytes of an entry, about. Default: as the metadata of a closed ledger say. If they don't say,
                the first request is under way alone, and shows the size.
            patience_s: how long an entry is asked for while bookies can't be reached. Default 20.
        """
        self._bookies, self._metadata, self._refresh = bookies, metadata, refresh
        self._turn, self._window, self._batch_bytes, self._patience_s = turn, window, batch_bytes, patience_s
        self._stored = StoredEntries(metadata.ledger, metadata.digest, metadata.password)
        self._refreshing = Lock()
        self._refreshed_at = -math.inf
        self._stale: EosError | None = None  # why the metadata could not be read again the last time
        self._beside = self._stored.head_bytes + _SIZE_BYTES
        entries = metadata.last_entry + 1
        known = entry_bytes or (metadata.length // entries if entries else 0)
        self._average = known + self._beside if known else None

    def read(self, first: int, last: int) -> Iterator[Entries]:
        """Yield the entries from `first` to `last`, both included, in order.

        Raises EntryMissing, EntryDamaged, BookieUnavailable, BookieUnauthorized (BookieUntrusted among it),
        MetadataUnreadable.
        """
        under_way: deque[Future[BoundedRange]] = deque()
        following = first
        with ThreadPoolExecutor(self._window, thread_name_prefix="eos-bookies") as pool:
            try:
                while following <= last or under_way:
                    while following <= last and len(under_way) < (self._window if self._average else 1):
                        wanted = self._next_range(following, last + 1 - following)
                        under_way.append(pool.submit(self._fetch, wanted))
                        following = wanted.end
                    read = under_way.popleft().result()
                    self._average, rest = read.average, read.rest
                    yield read.take()
                    if rest.left and under_way:  # later entries are under way, and the rest comes before them
                        under_way.appendleft(pool.submit(self._fetch, rest))
                    elif rest.left:
                        following = rest.following
            finally:
                for one in under_way:
                    one.cancel()

    def _next_range(self, first: int, most: int) -> BoundedRange:
        """Return the entries that one request asks for next, as many as are expected to fit in it."""
        average = self._average or _UNKNOWN_BYTES
        count = max(1, (self._batch_bytes - _ANSWER_BYTES) // average)
        return BoundedRange(first, min(count, _MOST_ENTRIES, most), self._batch_bytes, average, self._beside)

    def _fetch(self, wanted: BoundedRange) -> BoundedRange:
        """Read a range, or its beginning where its entries are larger than expected."""
        while not wanted.full:
            if not self._metadata.striped:
                wanted.add(self._from_replicas(wanted.following, wanted))
                continue
            asked = range(wanted.following, wanted.following + wanted.singles)
            found = self._from_first_choices(asked)
            while (entry := wanted.following) < asked.stop:
                wanted.add([found.pop(entry)] if entry in found else self._from_replicas(entry, wanted))
        return wanted

    def _from_first_choices(self, asked: Sequence[int]) -> dict[int, bytes]:
        """Ask each bookie of a striped ledger once for the entries it is asked for first. Return the right ones."""
        by_bookie: dict[str, list[int]] = defaultdict(list)
        for entry in asked:
            by_bookie[self._order(self._metadata, entry)[0]].append(entry)
        found = {}
        for bookie, entries in by_bookie.items():
            with suppress(BookieUnavailable, BookieUnauthorized), self._bookies.connection(bookie) as connection:
                for entry, answer in zip(entries, connection.read(self._metadata.ledger, entries), strict=True):
                    payload = self._stored.payload(entry, answer.stored[0]) if answer.stored else None
                    if payload is not None:
                        found[entry] = payload
        return found

    def _from_replicas(self, entry: int, wanted: BoundedRange) -> list[bytes]:
        """Return payloads from an entry of a range on, at least one. Raises what `read` raises."""
        backoff = Backoff(self._patience_s, _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while True:
            metadata = self._metadata
            denials: dict[str, Denial] = {}
            for bookie in self._order(metadata, entry):
                found = self._from_bookie(bookie, metadata, entry, wanted)
                if not isinstance(found, Denial):
                    return found
                denials[bookie] = found
            told = verdict(metadata.ledger, entry, denials)
            moved, stale = self._moved(metadata, proved=not isinstance(told, BookieUnavailable))
            if moved:
                continue
            if stale is not None:
                told = verdict(metadata.ledger, entry, denials, stale)
            if not isinstance(told, BookieUnavailable) or not backoff.pause():
                raise told from stale

    def _order(self, metadata: LedgerMetadata, entry: int) -> list[str]:
        """Return the replicas of an entry in the order in which they are asked."""
        replicas = metadata.replicas(entry)
        if not metadata.striped:
            replicas = tuple(sorted(replicas))  # the same bookie first for each entry: it reads ahead on its disk
        start = self._turn % len(replicas)
        return sorted(replicas[start:] + replicas[:start], key=self._bookies.quarantined)

    def _from_bookie(
        self, bookie: str, metadata: LedgerMetadata, entry: int, wanted: BoundedRange
    ) -> list[bytes] | Denial:
        count = min(wanted.end, metadata.end_of_ensemble(entry)) - entry
        try:
            answers = self._ask(bookie, metadata, entry, count, wanted)
        except BookieUnavailable as error:
            return Denial(Evidence.SILENT, str(error))
        except BookieUntrusted as error:
            return Denial(Evidence.UNTRUSTED, str(error))
        except BookieUnauthorized as error:
            return Denial(Evidence.REFUSES, str(error))
        payloads: list[bytes] = []
        for answer in answers:
            for stored in answer.stored[: count - len(payloads)]:
                payload = self._stored.payload(entry + len(payloads), stored)
                if payload is None:
                    return payloads or Denial(Evidence.DAMAGED)
                payloads.append(payload)
            if answer.code != Code.OK:
                break
        return payloads or _denial_of(answers[0].code)

    def _ask(
        self, bookie: str, metadata: LedgerMetadata, entry: int, count: int, wanted: BoundedRange
    ) -> Sequence[BookieAnswer]:
        """Ask one bookie; the answers begin with the entry's. Raises BookieUnavailable, BookieUnauthorized."""
        ledger = metadata.ledger
        if metadata.striped or count == 1:  # the next entry may lie elsewhere, or none is wanted
            with self._bookies.connection(bookie) as connection:
                return connection.read(ledger, [entry])
        if not self._bookies.reads_batches(bookie):
            with self._bookies.connection(bookie) as connection:
                return connection.read(ledger, range(entry, entry + min(count, wanted.singles)))
        try:
            with self._bookies.connection(bookie) as connection:
                return [connection.read_batch(ledger, entry, count, wanted.bytes_left)]
        except BookieClosed:
            # A bookie before 4.17 does so at a batch read. One that is gone does not answer now either.
            with self._bookies.connection(bookie) as connection:
                answers = connection.read(ledger, [entry])
            self._bookies.knows_no_batches(bookie)
            return answers

    def _moved(self, metadata: LedgerMetadata, *, proved: bool) -> tuple[bool, EosError | None]:
        """Read the metadata again, unless that was tried a moment ago.

        Returns whether the entries are elsewhere by now than these metadata say, and why that is not known.

        Args: whether the bookies' answers prove something if the entries are where these metadata say. Only metadata
        that were read after those answers tell.
        """
        if self._refresh is None:
            return False, None
        with self._refreshing:
            if self._metadata.ensembles != metadata.ensembles:
                return True, None
            due = time.monotonic() - self._refreshed_at >= _REFRESH_PAUSE_S
            if due or (proved and self._stale is None):
                try:
                    self._metadata, self._stale = self._refresh(), None
                except (EntryMissing, MetadataUnreadable):
                    raise  # an answer: the ledger is gone
                except EosError as error:
                    self._stale = error
                self._refreshed_at = time.monotonic()
            return self._metadata.ensembles != metadata.ensembles, self._stale


def verdict(ledger: int, entry: int, denials: Mapping[str, Denial], stale: EosError | None = None) -> LedgerReadError:
    """Return what the replicas of an entry prove by what each one said in its place.

    Args: why the metadata that name these replicas may be old. Then the replicas prove nothing.
    """
    where = f"entry {ledger}:{entry}"
    told = ", ".join(f"{bookie} {one}" for bookie, one in denials.items())
    kinds = {one.evidence for one in denials.values()}
    if stale is not None:
        why = told or "its metadata name no bookie"
        return BookieUnavailable(
            f"{where} can't be read now, because {why}. Other bookies may have the entry by now, but the metadata of "
            f"its ledger could not be read again ({stale}). Read again when bookies or brokers answer"
        )
    if not kinds:
        return MetadataUnreadable(f"{where} lies on no bookie, by the metadata of its ledger")
    if Evidence.SILENT in kinds:
        return BookieUnavailable(f"{where} can't be read now, because {told}. Read again when the bookies answer")
    if Evidence.REFUSES in kinds:
        return BookieUnauthorized(
            f"{where} can't be read, because {told}. Give credentials that the bookies know, "
            "or read through the brokers"
        )
    if Evidence.UNTRUSTED in kinds:
        return BookieUntrusted(
            f"{where} can't be read, because {told}. Trust the authority that signed the bookies' certificates, reach "
            "each bookie by a name that its certificate has, or read through the brokers"
        )
    if Evidence.DAMAGED in kinds:
        return EntryDamaged(f"{where} is damaged on each bookie that has it ({told})")
    return EntryMissing(f"{where} is lost. Each bookie of its write set was asked, and {told}")


def _denial_of(code: int) -> Denial:
    if code in (Code.NO_LEDGER, Code.NO_ENTRY):
        return Denial(Evidence.LACKS_IT)
    return Denial(Evidence.SILENT, f"it answered with code {code}")
