"""Deltas, snapshots and changelogs: streams of changes to one state store, each ended by a mark.

    delta, snapshot, changelog v1    { int key bytes, key, int value bytes (-1: deleted), value } … int -1
    changelog v2                     UTF "v2" { byte 01 put | 10 delete | 11 merge, int, key, int, value } … byte 00
    changelog v3                     UTF "v3", UTF lineage, then as v1
    changelog v4                     UTF "v4", UTF lineage, then as v2

v2 and v4 are for stores with column families; v3 and v4 for checkpoint format 2, whose files have unique ids. The
lineage is JSON: version and id of each state since the last snapshot, up to the one before this.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eos.json_reader import read_json
from statestore.checkpoint.compression import decompress
from statestore.errors import Damaged, UnknownVersion

_INT = struct.Struct(">i")
_KNOWN = 4
_END, _PUT, _DELETE, _MERGE = 0x00, 0x01, 0x10, 0x11


@dataclass(frozen=True, slots=True)
class Ancestor:
    """One step of a lineage: the state of a version, and the unique id of its file."""

    version: int
    uid: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The content of a delta, a snapshot or a changelog.

    Attributes:
        format: 1 to 4, as above.
        lineage: oldest first; empty in formats 1 and 2.
        puts: how many keys were put or merged.
        deletes: how many keys were deleted.
    """

    format: int
    lineage: tuple[Ancestor, ...]
    puts: int
    deletes: int


def read_changes(data: bytes) -> Changes:
    """Read a delta, a snapshot or a changelog to its end.

    Raises:
        Damaged: it is cut short, or not such a file.
        UnknownVersion: a newer Spark wrote it.
    """
    content = decompress(data)
    form, lineage, at = _head(content)
    try:
        puts, deletes, at = (_typed if form in (2, 4) else _plain)(content, at)
    except struct.error as error:
        raise Damaged("it ends without the mark of its end. It was cut short") from error
    if at != len(content):
        raise Damaged(f"{len(content) - at} bytes follow the mark of its end")
    return Changes(form, lineage, puts, deletes)


def changes_in(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the changes of a delta or a snapshot: a key, and its value or None where it is deleted.

    Raises:
        Damaged: it is cut short, or not such a file.
    """
    read_changes(data)  # to its end, before anything is made of it
    content, at = decompress(data), 0
    while (length := _INT.unpack_from(content, at)[0]) >= 0:
        key, at = content[at + 4 : at + 4 + length], at + 4 + length
        (length,) = _INT.unpack_from(content, at)
        at += 4
        yield key, None if length < 0 else content[at : at + length]
        at += max(length, 0)


def snapshot_of(rows: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the content of a snapshot of these keys and values; it is to be compressed."""
    parts = [part for key, value in rows for part in (_INT.pack(len(key)), key, _INT.pack(len(value)), value)]
    return b"".join([*parts, _INT.pack(-1)])


def read_lineage(data: bytes) -> tuple[Ancestor, ...]:
    """Return the lineage of a changelog; empty if it has none.

    Raises:
        Damaged: it can't be read.
        UnknownVersion: a newer Spark wrote it.
    """
    return _head(decompress(data))[1]


def _head(content: bytes) -> tuple[int, tuple[Ancestor, ...], int]:
    """The format, the lineage, and where the changes begin."""
    # A key of v1 that looks so would be 144,000 bytes long, its length beginning 00 02 76 3x.
    if content[:3] != b"\x00\x02v" or not b"2" <= content[3:4] <= b"9":
        return 1, (), 0
    form = int(content[3:4])
    if form > _KNOWN:
        raise UnknownVersion(
            f"it is a changelog of version v{form}, which a newer Spark wrote. This statestore reads up to v{_KNOWN}"
        )
    if form == 2:
        return form, (), 4
    (length,) = struct.unpack_from(">H", content.ljust(6, b"\0"), 4)
    return form, _lineage(content[6 : 6 + length]), 6 + length


def _lineage(text: bytes) -> tuple[Ancestor, ...]:
    try:
        return tuple(
            sorted(
                (Ancestor(int(step["version"]), str(step["checkpointUniqueId"])) for step in read_json(text)),
                key=lambda step: step.version,
            )
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"its lineage can't be read: {error}") from error


def _plain(content: bytes, at: int) -> tuple[int, int, int]:
    puts = deletes = 0
    while True:
        (key,) = _INT.unpack_from(content, at)
        at += 4
        if key == -1:
            return puts, deletes, at
        if key < 0:
            raise Damaged(f"a key at byte {at} has the length {key}")
        (value,) = _INT.unpack_from(content, at + key)
        at += key + 4
        if value < 0:
            deletes += 1
        else:
            puts += 1
            at += value


def _typed(content: bytes, at: int) -> tuple[int, int, int]:
    puts = deletes = 0
    while True:
        (kind,) = struct.unpack_from("B", content, at)
        at += 1
        if kind == _END:
            return puts, deletes, at
        if kind not in (_PUT, _DELETE, _MERGE):
            raise Damaged(f"a change at byte {at - 1} is of the unknown kind {kind:#04x}")
        (key,) = _INT.unpack_from(content, at)
        (value,) = _INT.unpack_from(content, at + 4 + max(key, 0))
        if key < 0 or (value < 0) != (kind == _DELETE):
            raise Damaged(f"a change at byte {at - 1} has a key of {key} and a value of {value} bytes")
        at += 8 + key + max(value, 0)
        if kind == _DELETE:
            deletes += 1
        else:
            puts += 1
