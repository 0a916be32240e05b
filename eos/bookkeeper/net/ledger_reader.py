"""Reads a range of a ledger's entries from whichever replica has them.

Entries are numbered without a gap, so each is asked for by its number, and each answer is proof of one thing: a right
digest proves the entry, "no such entry" from one replica proves nothing, and from all of them a loss. No answer proves
nothing either. Reading never fences a ledger and never writes, so the ledger's writer does not notice it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from eos.backoff import Backoff
from eos.bookkeeper.errors import (
    BookieClosed,
    BookieUnauthorized,
    BookieUnavailable,
    EntryDamaged,
    EntryMissing,
    LedgerReadError,
    MetadataUnreadable,
)
from eos.bookkeeper.net.bookies import Bookies
from eos.bookkeeper.wire.digest import StoredEntries
from eos.bookkeeper.wire.frames import BookieAnswer, Code
from eos.bookkeeper.wire.metadata import LedgerMetadata

BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of the entries that one request asks for, about. A bookie gives 5 MiB at most (`maxBatchReadSize`)."""

_MOST_ENTRIES = 4000  # of one request
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0

Entries = list[tuple[int, bytes]]
"""Numbers and payloads, in order."""


class Evidence(Enum):
    """The answer of one replica that did not give an entry."""

    LACKS_IT = "does not have it"
    DAMAGED = "has it damaged"
    SILENT = "could not be asked"
    REFUSES = "refuses this client"


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
                bookies. Default: they are taken as they are.
            turn: which replica is asked first, so that several readers share the load. Default 0.
            window: how many requests are under way at once, so that `window` times `batch_bytes` wait in memory at
                most, and one entry of each request where entries are larger. Default 3.
            batch_bytes: bytes that one request asks for, about. Default 4 MiB.
            entry_bytes: bytes of an entry, about. Default: as the metadata of a closed ledger say, else 4 KiB.
            patience_s: how long an entry is asked for while bookies can't be reached. Default 20.
        """
        self._bookies, self._metadata, self._refresh = bookies, metadata, refresh
        self._turn, self._window, self._batch_bytes, self._patience_s = turn, window, batch_bytes, patience_s
        self._stored = StoredEntries(metadata.ledger, metadata.digest, metadata.password)
        entries = metadata.last_entry + 1
        self._average = max(1, entry_bytes or (metadata.length // entries if entries else 4096))

    def read(self, first: int, last: int) -> Iterator[Entries]:
        """Yield the entries from `first` to `last`, both included, in order.

        Raises EntryMissing, EntryDamaged, BookieUnavailable, BookieUnauthorized, MetadataUnreadable.
        """
        under_way: deque[Future[Entries]] = deque()
        following = first
        with ThreadPoolExecutor(self._window, thread_name_prefix="eos-bookies") as pool:
            try:
                while following <= last or under_way:
                    while following <= last and len(under_way) < self._window:
                        count = min(max(1, self._batch_bytes // self._average), _MOST_ENTRIES, last + 1 - following)
                        under_way.append(pool.submit(self._fetch, following, count))
                        following += count
                    yield under_way.popleft().result()
            finally:
                for one in under_way:
                    one.cancel()

    def _fetch(self, first: int, count: int) -> Entries:
        entries: Entries = []
        found = self._from_first_choices(first, count) if self._metadata.striped else {}
        while len(entries) < count:
            entry = first + len(entries)
            if entry in found:
                entries.append((entry, found[entry]))
                continue
            payloads = self._from_replicas(entry, count - len(entries))
            entries.extend(enumerate(payloads, entry))
        return entries

    def _from_first_choices(self, first: int, count: int) -> dict[int, bytes]:
        """Ask each bookie of a striped ledger once for all entries that it is asked for first; return what is right."""
        by_bookie: dict[str, list[int]] = defaultdict(list)
        for entry in range(first, first + count):
            by_bookie[self._order(self._metadata, entry)[0]].append(entry)
        found = {}
        for bookie, entries in by_bookie.items():
            with suppress(BookieUnavailable, BookieUnauthorized), self._bookies.connection(bookie) as connection:
                for entry, answer in zip(entries, connection.read(self._metadata.ledger, entries), strict=True):
                    payload = self._stored.payload(entry, answer.stored[0]) if answer.stored else None
                    if payload is not None:
                        found[entry] = payload
        return found

    def _from_replicas(self, entry: int, count: int) -> list[bytes]:
        """Return payloads from an entry on, at least one. Raises what `read` raises."""
        backoff = Backoff(self._patience_s, _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while True:
            metadata = self._metadata
            denials: dict[str, Denial] = {}
            for bookie in self._order(metadata, entry):
                found = self._from_bookie(bookie, metadata, entry, count)
                if not isinstance(found, Denial):
                    return found
                denials[bookie] = found
            if self._moved(metadata):
                continue
            told = verdict(metadata.ledger, entry, denials)
            if not isinstance(told, BookieUnavailable) or not backoff.pause():
                raise told

    def _order(self, metadata: LedgerMetadata, entry: int) -> list[str]:
        """Return the replicas of an entry in the order in which they are asked."""
        replicas = metadata.replicas(entry)
        if not metadata.striped:
            replicas = tuple(sorted(replicas))  # the same bookie first for each entry: it reads ahead on its disk
        start = self._turn % len(replicas)
        return sorted(replicas[start:] + replicas[:start], key=self._bookies.quarantined)

    def _from_bookie(self, bookie: str, metadata: LedgerMetadata, entry: int, count: int) -> list[bytes] | Denial:
        count = min(count, metadata.end_of_ensemble(entry) - entry)
        try:
            answers = self._ask(bookie, metadata, entry, count)
        except BookieUnavailable as error:
            return Denial(Evidence.SILENT, str(error))
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

    def _ask(self, bookie: str, metadata: LedgerMetadata, entry: int, count: int) -> Sequence[BookieAnswer]:
        """Ask one bookie; the answers begin with the entry's. Raises BookieUnavailable, BookieUnauthorized."""
        ledger = metadata.ledger
        if metadata.striped or count == 1:  # the next entry may lie elsewhere, or none is wanted
            with self._bookies.connection(bookie) as connection:
                return connection.read(ledger, [entry])
        if not self._bookies.reads_batches(bookie):
            with self._bookies.connection(bookie) as connection:
                return connection.read(ledger, range(entry, entry + count))
        try:
            with self._bookies.connection(bookie) as connection:
                return [connection.read_batch(ledger, entry, count, self._batch_bytes)]
        except BookieClosed:
            # A bookie before 4.17 does so at a batch read. One that is gone does not answer now either.
            with self._bookies.connection(bookie) as connection:
                answers = connection.read(ledger, [entry])
            self._bookies.knows_no_batches(bookie)
            return answers

    def _moved(self, metadata: LedgerMetadata) -> bool:
        """Whether the ledger's entries are elsewhere by now than these metadata say."""
        if self._refresh is None:
            return False
        self._metadata = self._refresh()
        return self._metadata.ensembles != metadata.ensembles


def verdict(ledger: int, entry: int, denials: Mapping[str, Denial]) -> LedgerReadError:
    """Return what the replicas of an entry prove by what each one said in its place."""
    where = f"entry {ledger}:{entry}"
    told = ", ".join(f"{bookie} {one}" for bookie, one in denials.items())
    kinds = {one.evidence for one in denials.values()}
    if not kinds:
        return MetadataUnreadable(f"{where} lies on no bookie, by the metadata of its ledger")
    if Evidence.SILENT in kinds:
        return BookieUnavailable(f"{where} can't be read now, because {told}. Read again when the bookies answer")
    if Evidence.REFUSES in kinds:
        return BookieUnauthorized(
            f"{where} can't be read, because {told}. Give credentials that the bookies know, "
            "or read through the brokers"
        )
    if Evidence.DAMAGED in kinds:
        return EntryDamaged(f"{where} is damaged on each bookie that has it ({told})")
    return EntryMissing(f"{where} is lost. Each bookie of its write set was asked, and {told}")


def _denial_of(code: int) -> Denial:
    if code in (Code.NO_LEDGER, Code.NO_ENTRY):
        return Denial(Evidence.LACKS_IT)
    return Denial(Evidence.SILENT, f"it answered with code {code}")
