"""The jar's view of a tree of names: its files, and the ledgers that they are in. A question is about many of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from statestore.bk.address import BkAddress
from statestore.errors import NotFound
from statestore.hadoop.file_systems import Hadoop

NO_LEDGER = -1
_AT_ONCE = 10_000  # files of one answer, some 3 MB: for those of a large checkpoint the JVM would lack memory
_SAVEPOINT = "s-"  # what the name of a savepoint's reference begins with


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file: which bytes it has, and where they are.

    Attributes:
        path: in the tree.
        write: names the bytes: made once, never used again. A compaction appends "~".
        generation: how often the file was renamed.
        ledger: where its bytes are; -1 for an empty file.
        first, last: its entries there, both inclusive; 0 and -1 for an empty file.
        entry_size: bytes of each entry but the last.
        length: bytes.
        crc32c: over all bytes, unsigned.
        mtime_ms: milliseconds since the epoch.
    """

    path: str
    write: str
    generation: int
    ledger: int
    first: int
    last: int
    entry_size: int
    length: int
    crc32c: int
    mtime_ms: int


@dataclass(frozen=True, slots=True)
class Stored:
    """The facts that BookKeeper has of a ledger.

    Attributes:
        ensemble, write_quorum, ack_quorum: how its entries are spread.
        closed: True if it gets no further entries.
        length: bytes of all entries; of use only when it is closed, since until then only its bookies know.
        bookies: those of all its ensembles.
    """

    ensemble: int
    write_quorum: int
    ack_quorum: int
    closed: bool
    length: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BkLedger:
    """A registered ledger.

    Attributes:
        id: its number in BookKeeper.
        owner: the writer process that made it.
        sealed: True if its writer or a sweeper has noted that it gets no further entries.
        references: a file's `write`, or "s-" and the name of a savepoint.
        stored: None when BookKeeper has no such ledger.
    """

    id: int
    owner: str
    sealed: bool
    references: tuple[str, ...]
    stored: Stored | None

    @property
    def savepoints(self) -> list[str]:
        """The names of the savepoints that hold it."""
        return sorted(name.removeprefix(_SAVEPOINT) for name in self.references if name.startswith(_SAVEPOINT))


def files(hadoop: Hadoop, address: BkAddress) -> dict[str, FileRecord]:
    """Return all files at or below an address, by path. Not a cut: files may come and go meanwhile.

    Raises:
        NotFound: nothing is there.
    """
    return records(hadoop, address, _below(hadoop, address.uri))


def records(hadoop: Hadoop, address: BkAddress, paths: Iterable[str]) -> dict[str, FileRecord]:
    """Return the files among these paths of the tree that an address lies in, by path."""
    found: dict[str, FileRecord] = {}
    left = iter(paths)
    while some := list(islice(left, _AT_ONCE)):
        with hadoop.explained(address.uri):
            said = hadoop.jvm.eos.bk.Look.files(hadoop.file_system(address.uri), json.dumps(some))
        found |= {one["path"]: FileRecord(**one) for one in json.loads(said)}
    return found


def _below(hadoop: Hadoop, uri: str) -> Iterator[str]:
    """Yield the path of each file at or below an address."""
    for status in hadoop.list(uri):
        if not status.is_directory:
            yield status.path
            continue
        with suppress(NotFound):  # it went meanwhile
            yield from _below(hadoop, status.uri)


def ledgers(hadoop: Hadoop, address: BkAddress, ids: Iterable[int] | None = None) -> dict[int, BkLedger]:
    """Return registered ledgers of a tree by id; None: all. One that is freed meanwhile is left out."""
    wanted = [] if ids is None else sorted(ids)
    if ids is not None and not wanted:
        return {}
    with hadoop.explained(address.uri):
        said = hadoop.jvm.eos.bk.Look.ledgers(hadoop.file_system(address.uri), json.dumps(wanted))
    return {one["id"]: _ledger(**one) for one in json.loads(said)}


def _ledger(references: list[str], stored: dict[str, object] | None, **more: object) -> BkLedger:
    known = None if stored is None else Stored(**{**stored, "bookies": tuple(stored["bookies"])})  # type: ignore[arg-type]
    return BkLedger(references=tuple(references), stored=known, **more)  # type: ignore[arg-type]
