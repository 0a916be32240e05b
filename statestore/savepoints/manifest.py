"""What a savepoint is, as records, and as the text and the chunks that its znodes hold."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import google_crc32c

from statestore.bk.records import NO_LEDGER, FileRecord, decode_name, encode_path
from statestore.errors import Damaged, InvalidInput

VERSION: Final = 1
CHUNK: Final = 400 * 1024
"""Bytes of a manifest in one znode; ZooKeeper takes 1 MiB with all that is around it."""
METADATA: Final = "metadata"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")

State = Literal["building", "abandoned", "ready", "deleting"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A checkpoint as it stood at a committed batch.

    Attributes:
        batch: the newest batch in it.
        query: the id of the query, from the checkpoint's metadata; "" where it has none.
        files: by their paths below the checkpoint.
    """

    batch: int
    query: str
    files: Mapping[str, FileRecord]

    @property
    def ledgers(self) -> list[int]:
        """The ledgers that hold its bytes; empty files have none."""
        return sorted({record.ledger for record in self.files.values()} - {NO_LEDGER})


@dataclass(frozen=True, slots=True)
class Savepoint:
    """What is known of a savepoint without its list of files.

    Attributes:
        name: its name in the tree, or on the topic.
        state: "building" while its maker lives, "abandoned" when that has ended before it was done, "ready", or
            "deleting" when somebody began to delete it. Only a ready one can be restored.
        source: the address of the checkpoint.
        created_ms: when it was begun, milliseconds since the epoch.
        batch: the newest batch in it; -1 unless ready, as the numbers below are 0 and "" is the query.
        query: the id of the query that resumes from it.
        files, ledgers: how many it holds.
        size: bytes of its files.
        chunks: znodes that the list of files takes.
        crc32c: over the list of files.
    """

    name: str
    state: State
    source: str
    created_ms: int
    batch: int = -1
    query: str = ""
    files: int = 0
    size: int = 0
    ledgers: int = 0
    chunks: int = 0
    crc32c: int = 0

    def encode(self) -> bytes:
        """Return the text of its znode."""
        fields = asdict(self)
        del fields["name"]
        return json.dumps({"v": VERSION, **fields}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, name: str, data: bytes) -> Savepoint:
        """Read the text of its znode.

        Raises:
            Damaged: not such a text, or of a version that is not known here.
        """
        try:
            fields: dict[str, Any] = json.loads(data)
            if fields.pop("v") != VERSION:
                raise Damaged(f"Savepoint {name} was made by a statestore of another version: {data[:80]!r}")
            return cls(name, **fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Damaged(f"The record of savepoint {name} cannot be read: {data[:200]!r}") from error

    def ready(self, cut: Cut, chunks: Sequence[bytes], crc32c: int) -> Savepoint:
        """Return it as it is once all of the cut is held."""
        return replace(
            self,
            state="ready",
            batch=cut.batch,
            query=cut.query,
            files=len(cut.files),
            size=sum(record.length for record in cut.files.values()),
            ledgers=len(cut.ledgers),
            chunks=len(chunks),
            crc32c=crc32c,
        )


def check_name(name: str) -> str:
    """Return a savepoint's name.

    Raises:
        InvalidInput: it is none.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{name!r} cannot name a savepoint: use up to 100 letters, digits, '.', '_' and '-', with a letter or digit"
            " at both ends"
        )
    return name


def restore_order(path: str) -> tuple[int, str]:
    """Sort key for a checkpoint's files: `commits/` late, and last `metadata`, without which Spark starts no query."""
    return (2 if path == METADATA else 1 if path.startswith("commits/") else 0), path


def pack(files: Mapping[str, FileRecord]) -> tuple[list[bytes], int]:
    """Write a list of files as chunks for znodes; the second part of the answer is its CRC32C."""
    lines = (f"{encode_path(path)}\t{record.encode().decode()}" for path, record in sorted(files.items()))
    text = "\n".join(lines).encode()
    packed = zlib.compress(text)
    return [packed[at : at + CHUNK] for at in range(0, len(packed), CHUNK)], google_crc32c.value(text)


def unpack(savepoint: Savepoint, chunks: Sequence[bytes]) -> dict[str, FileRecord]:
    """Read a list of files back.

    Raises:
        Damaged: the chunks are not those that were written.
    """
    try:
        text = zlib.decompress(b"".join(chunks))
    except zlib.error as error:
        raise Damaged(f"The list of files of savepoint {savepoint.name} cannot be unpacked: {error}") from error
    if google_crc32c.value(text) != savepoint.crc32c or len(chunks) != savepoint.chunks:
        raise Damaged(f"The list of files of savepoint {savepoint.name} does not have its CRC32C")
    files = {}
    for line in text.decode().splitlines():
        coded, _, record = line.partition("\t")
        path = "/".join(decode_name(name) for name in coded.split("/"))
        files[path] = FileRecord.decode(path, record.encode())
    return files
