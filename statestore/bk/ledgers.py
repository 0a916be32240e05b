"""What BookKeeper knows of a ledger, read from its metadata in ZooKeeper: no bookie is asked, and no JVM is needed.

The metadata are a line of text with the format's version and a protobuf message behind its length. Versions before 3,
which BookKeeper 4.10 and newer no longer write, are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from statestore.bk.zookeeper import ZooKeeper
from statestore.errors import Damaged

_HEADER = b"BookieMetadataFormatVersion\t3\n"
_CLOSED = 3
_LARGEST_SHORT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Metadata:
    """A ledger in BookKeeper.

    Attributes:
        ensemble, write_quorum, ack_quorum: how its entries are spread.
        closed: whether it gets no more entries, as BookKeeper knows.
        length: bytes of all entries; 0 while it is open, since only its bookies know then.
        last: the last entry; -1 while it is open, or when it is empty.
        bookies: by the first entry that they hold, those of each ensemble.
    """

    ensemble: int
    write_quorum: int
    ack_quorum: int
    closed: bool
    length: int
    last: int
    bookies: Mapping[int, tuple[str, ...]]


def ledger_path(ledgers: str, ledger: int) -> str:
    """Return the znode of a ledger's metadata below BookKeeper's path, as its default ledger manager lays it out."""
    if ledger <= _LARGEST_SHORT:
        digits = f"{ledger:010d}"
        parts = [digits[:2], digits[2:6], digits[6:]]
    else:
        digits = f"{ledger:019d}"
        parts = [digits[:3], *(digits[start : start + 4] for start in (3, 7, 11, 15))]
    return "/".join([ledgers, *parts[:-1], f"L{parts[-1]}"])


def read_ledgers(zookeeper: ZooKeeper, ledgers: str, ids: Iterable[int]) -> dict[int, Metadata]:
    """Return what BookKeeper knows of ledgers; those that it does not have are left out.

    Raises:
        Damaged: metadata that can't be read.
    """
    wanted = list(ids)
    nodes = zookeeper.nodes(ledger_path(ledgers, ledger) for ledger in wanted)
    return {ledger: decode(ledger, node.data) for ledger, node in zip(wanted, nodes, strict=True) if node is not None}


def decode(ledger: int, data: bytes) -> Metadata:
    """Read a ledger's metadata.

    Raises:
        Damaged: not such metadata, or an older format.
    """
    try:
        if not data.startswith(_HEADER):
            raise ValueError(f"it begins with {data[: len(_HEADER)]!r}")
        length, at = _varint(data, len(_HEADER))
        numbers: dict[int, int] = {}
        bookies: dict[int, tuple[str, ...]] = {}
        for field, found in _fields(data[at : at + length]):
            if isinstance(found, int):
                numbers[field] = found
            elif field == 6:
                first, members = _segment(found)
                bookies[first] = members
        closed = numbers[5] == _CLOSED
        last = numbers.get(4, -1) if closed else -1
        write = numbers[1]
        return Metadata(
            ensemble=numbers[2],
            write_quorum=write,
            ack_quorum=numbers.get(9, write),
            closed=closed,
            length=numbers[3] if closed else 0,
            last=-1 if last >= 2**63 else last,
            bookies=bookies,
        )
    except (KeyError, IndexError, ValueError) as error:
        raise Damaged(f"BookKeeper's metadata of ledger {ledger} can't be read: {error}") from error


def _segment(data: bytes) -> tuple[int, tuple[str, ...]]:
    first, members = 0, []
    for field, found in _fields(data):
        if isinstance(found, int):
            first = found
        elif field == 1:
            members.append(found.decode())
    return first, tuple(members)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            number, at = _varint(data, at)
            yield key >> 3, number
        elif key & 7 == 2:
            length, at = _varint(data, at)
            yield key >> 3, data[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {key & 7}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
